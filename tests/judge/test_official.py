"""Scores of outside sets by their own definitions."""

import json

import numpy as np
import pytest

import audit as audit_script
import import_set
from hfd.data.manifest import read_manifest
from hfd.judge.intervals import Interval
from hfd.judge.metrics import Answer
from hfd.judge.official import official_scores, word_times
from tests.data import outside_rows
from tests.judge.world import World, run_model


def answer(*segments, texts=()):
    return Answer([Interval(a, b) for a, b in segments], texts, (), 24000, 20.0)


@pytest.mark.parametrize(
    ("segments", "texts", "takes"),
    [
        ([], [], False),
        ([(1.0, 1.9)], [(1.0, "one two three")], False),
        ([(1.0, 1.9)], [(1.0, "one two three four")], True),
        ([(1.0, 2.0)], [(1.0, "hm")], True),
        ([(1.0, 1.2), (3.0, 3.2)], [], True),  # two short words that span two seconds
        ([(1.0, 1.4)], [(1.0, "好的好")], False),
        ([(1.0, 1.4)], [(1.0, "好的好的")], True),
        ([(5.2, 9.0)], [], False),  # after the recording: their output has its length
        ([(4.5, 9.0)], [], False),  # 0.5 s of it lie within
    ],
)
def test_a_pause_take_over_is_counted_as_full_duplex_bench_does(segments, texts, takes):
    found = official_scores(answer(*segments, texts=texts), {"fdb_pause_tor": [0.0, 5.0]})
    assert found == {"fdb_pause_tor": takes}


def test_an_interruption_is_timed_from_its_end_and_never_negative():
    window = {"fdb_interruption_tor": [6.0, 12.0]}
    late = official_scores(answer((2.0, 5.0), (6.8, 9.0)), window)
    assert late == {"fdb_interruption_tor": True, "fdb_latency_s": pytest.approx(0.8)}
    going_on = official_scores(answer((2.0, 9.0)), window)
    assert going_on == {"fdb_interruption_tor": True, "fdb_latency_s": 0.0}
    silent = official_scores(answer((2.0, 5.0)), window)
    assert silent == {"fdb_interruption_tor": False, "fdb_latency_s": None}


def test_holding_means_no_speech_at_all_in_the_seconds_that_ask_for_it():
    window = {"wait_held": [1.0, 3.0]}
    assert official_scores(answer((3.0, 5.0)), window) == {"wait_held": True}
    assert official_scores(answer((2.9, 3.1)), window) == {"wait_held": False}
    assert official_scores(answer((0.5, 1.1)), window) == {"wait_held": False}


def test_words_are_spread_over_their_segment_and_cut_by_the_window():
    words = word_times(answer((1.0, 2.0), texts=[(1.0, "a b c d")]), 1.3, 1.9)
    assert [(w.start, w.end) for w in words] == [
        pytest.approx(span) for span in ((1.3, 1.5), (1.5, 1.75), (1.75, 1.9))
    ]


def test_an_audit_shows_the_sets_own_scores_beside_ours_and_counts_lost_samples(tmp_path):
    root = tmp_path / "outside"
    for name, make in (
        ("full-duplex-bench", outside_rows.full_duplex_bench),
        ("humdial", outside_rows.humdial),
        ("easy-turn", outside_rows.easy_turn),
    ):
        out = root / name
        source = make(tmp_path / "set" / name)
        import_set.main(["--set", name, "--from", str(source), "--out", str(out)])
    lines = []
    for path in root.glob("*/manifest.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            row |= {key: f"{path.parent.name}/{row[key]}" for key in ("video", "adapter")}
            lines.append(json.dumps(row, ensure_ascii=False))
    manifest = root / "manifest.jsonl"
    manifest.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    samples = read_manifest(manifest, root)
    world = World(root, [s for s in samples if "candor" not in s.sample_id])
    run_model(world, "hasty", silence_s=0.3)
    (tmp_path / "models.yaml").write_text("models: {hasty: {module: test}}\n")
    audit_script.main(
        ["--manifest", str(manifest), "--root", str(root), "--results", str(root / "results"),
         "--models-file", str(tmp_path / "models.yaml"), "--out", str(tmp_path / "audit"),
         "--jobs", "1", "--no-players"]
    )  # fmt: skip
    summary = json.loads((tmp_path / "audit" / "summary.json").read_text(encoding="utf-8"))
    rates = {
        (row["metric"], row["denominator"]): row
        for row in summary["metrics"]
        if row["by"] == "all" and row["statistic"] == "rate"
    }
    assert rates["fdb_pause_tor", "scored"]["n"] == 1
    assert rates["fdb_pause_tor", "strict"]["n"] == 2  # the candor row has no result
    assert rates["fdb_pause_tor", "scored"]["value"] == 1  # 0.3 s of silence are no end for people
    assert rates["wait_held", "strict"]["n"] == 3 and rates["wait_held", "strict"]["value"] < 1
    assert rates["h1_gap_takeover", "scored"]["n"] == 2
    assert not any(row["metric"] == "wait_held" for row in summary["sensitivity"])
    assert np.isfinite(rates["fdb_interruption_tor", "scored"]["value"])
