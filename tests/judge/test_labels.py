"""Label sheets: which clips, what they hide, and what becomes of planted labels."""

import json
import re

import pytest

import audit as audit_script
import label_sheet
from hfd.errors import HfdError
from hfd.files import read_json
from hfd.judge.label_clips import Clip, draw_clips
from hfd.judge.labels import Labels, Mark, agreement, read_labels
from tests.judge.test_stats import hesitation


def clip(k, model="m"):
    return Clip(f"{k:012d}", model, str(k), f"wav{k}", 2.0, 12.0)


def measured(k, takes_over, onset=5.0):
    record = hesitation("m", k, takes_over)
    record.facts |= {"wav_sha256": f"wav{k}", "speech": [(0.2, 1.0), (onset, onset + 2)]}
    return record


def planted(a, b, records, clips=None):
    """Agreement of two raters' (turn, onset) lists, one for each clip."""
    clips = clips or [clip(k) for k in range(len(records))]
    marks = {
        name: {c.name: Mark(*answer) for c, answer in zip(clips, answers, strict=True)}
        for name, answers in (("Ann", a), ("鲍勃", b))
    }
    found = agreement(Labels({c.name: c for c in clips}, marks), {"m": records})
    turns = {(row["first"], row["second"]): row for row in found["turns"]}
    onsets = {(row["first"], row["second"]): row for row in found["onsets"]}
    return found, turns, onsets


def test_two_who_always_agree_with_each_other_and_the_measurement():
    records = [measured(k, k % 2 == 0) for k in range(20)]
    answers = [("pause" if k % 2 == 0 else "held", 3.0) for k in range(20)]
    _, turns, onsets = planted(answers, answers, records)
    for pair in (("Ann", "鲍勃"), ("Ann", "measured"), ("鲍勃", "measured")):
        assert turns[pair]["equal"] == 1 and turns[pair]["kappa"] == pytest.approx(1)
        assert turns[pair]["n"] == onsets[pair]["n"] == 20
        assert onsets[pair]["bias_s"] == pytest.approx(0)


def test_the_kappa_of_a_textbook_table():
    """Cohen's own kind of table: 20 both yes, 5 and 10 apart, 15 both no: kappa 0.4."""
    pairs = 20 * [("pause", "pause")] + 5 * [("pause", "held")]
    pairs += 10 * [("held", "pause")] + 15 * [("held", "held")]
    records = [measured(k, False) for k in range(50)]
    _, turns, _ = planted([(a, None) for a, _ in pairs], [(b, None) for _, b in pairs], records)
    row = turns["Ann", "鲍勃"]
    assert (row["equal"], row["kappa"]) == (pytest.approx(0.7), pytest.approx(0.4))
    assert row["kappa_low"] < 0.4 < row["kappa_high"] and row["equal_low"] < 0.7 < row["equal_high"]
    constant = turns["Ann", "measured"]
    assert (constant["kappa"], constant["kappa_low"]) == (pytest.approx(0), None)


def test_a_rater_who_marks_late_shows_as_bias_with_its_interval():
    records = [measured(k, False, onset=5.0 + 0.1 * k) for k in range(30)]
    early = [("held", 3.0 + 0.1 * k) for k in range(30)]
    late = [("held", 3.0 + 0.1 * k + (0.10 if k % 2 else 0.14)) for k in range(30)]
    _, turns, onsets = planted(early, late, records)
    assert onsets["鲍勃", "measured"]["bias_s"] == pytest.approx(0.12)
    assert 0.10 < onsets["鲍勃", "measured"]["low"] < 0.12 < onsets["鲍勃", "measured"]["high"]
    assert onsets["Ann", "鲍勃"]["bias_s"] == pytest.approx(-0.12)
    assert turns["Ann", "鲍勃"]["kappa"] is None, "one answer throughout: kappa says nothing"


def test_unsure_and_unmarked_answers_count_in_nothing():
    records = [measured(k, True) for k in range(4)]
    answers = [("pause", 3.0), ("unsure", None), (None, None), ("pause", None)]
    marks = [Mark(None if turn == "unsure" else turn, onset) for turn, onset in answers]
    _, turns, onsets = planted([(m.turn, m.onset_s) for m in marks], 4 * [("pause", 3.0)], records)
    assert turns["Ann", "鲍勃"]["n"] == 2 and onsets["Ann", "鲍勃"]["n"] == 1


def test_labels_of_another_sound_or_model_are_left_out_and_counted():
    records = [measured(k, False) for k in range(3)]
    records[1].facts["wav_sha256"] = "made anew"
    clips = [clip(0), clip(1), clip(2, "gone")]
    found, turns, _ = planted(3 * [("held", 3.0)], 3 * [("held", 3.0)], records, clips)
    assert (found["clips"], found["left_out"]) == (1, 2)
    assert turns["Ann", "measured"]["n"] == 1


@pytest.fixture(scope="module")
def sheet(world, honest, tmp_path_factory):
    """A sheet of the honest model's results."""
    out = tmp_path_factory.mktemp("labels") / "标注 1's"
    label_sheet.main(
        ["--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root),
         "--results", str(honest.parent), "--models", "talker", "--nonce", "word",
         "--out", str(out)]
    )  # fmt: skip
    return out


def test_a_sheet_hides_the_model_and_holds_every_clip(sheet, world):
    page = next(sheet.glob("sheet_*.html")).read_text(encoding="utf-8")
    key = read_json(next(sheet.glob("key_*.json")))
    assert len(key["clips"]) == 6, "the samples in which somebody hesitates"
    assert all(one["name"] in page for one in key["clips"])
    assert page.count("data:audio/webm;base64,") == 6
    said = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page.split("const SHEET = ")[1].split("\n")[0])
    hidden = [one["wav_sha256"] for one in key["clips"]] + [s.sample_id for s in world.samples]
    assert not any(text in said for text in ("talker", "word", *hidden))


def test_the_nonce_decides_the_order_and_every_model_has_its_share(world, honest):
    results = {"talker": honest, "another": honest}
    first, again = (draw_clips(world.samples, results, "one", 8) for _ in range(2))
    other = draw_clips(world.samples, results, "two", 8)
    assert first == again and [c.sample_id for c in first] != [c.sample_id for c in other]
    assert sorted(clip.model for clip in first) == 4 * ["another"] + 4 * ["talker"]
    with pytest.raises(HfdError, match="no result with sound"):
        draw_clips(world.samples, {"nobody": honest.parent / "nobody"}, "one")


def written(sheet, rater, **labels):
    key = next(sheet.glob("key_*.json"))
    name = key.stem.removeprefix("key_")
    value = {"schema": "hfd-labels/1", "sheet": name, "rater": rater, "labels": labels}
    path = sheet / f"labels_{rater}.json"
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def test_an_audit_reads_the_labels_and_shows_the_agreement(sheet, world, honest, tmp_path):
    names = [one["name"] for one in read_json(next(sheet.glob("key_*.json")))["clips"]]
    answer = {"turn": "held", "onset_s": 2.0}
    files = [written(sheet, rater, **dict.fromkeys(names, answer)) for rater in ("安", "Bo")]
    models = tmp_path / "models.yaml"
    models.write_text("models: {talker: {module: test, voice_origin: native_talker}}\n")
    arguments = [
        "--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root),
        "--results", str(honest.parent), "--models-file", str(models), "--models", "talker",
        "--out", str(tmp_path / "audit"), "--jobs", "1", "--no-players", "--labels", str(sheet),
    ]  # fmt: skip
    audit_script.main(arguments)
    found = read_json(tmp_path / "audit" / "summary.json")["agreement"]
    assert (found["clips"], found["left_out"], found["raters"]) == (6, 0, ["Bo", "安"])
    assert found["turns"][0]["equal"] == 1 and found["turns"][0]["n"] == 6
    assert (tmp_path / "audit" / "agreement.csv").is_file()
    for path in files:
        path.unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "x"}, "schema: 'x' is not 'hfd-labels/1'"),
        ({"rater": " "}, "rater: is missing or empty"),
        ({"rater": "measured"}, "is the rater of the measurement"),
        ({"sheet": "0000"}, "'0000' has no key here"),
        ({"sheet": "../x"}, "has no key here"),
        ({"labels": []}, "labels: is a list, not an object"),
        ({"labels": {"nobody": {"turn": "held"}}}, "labels.nobody: is no clip of this sheet"),
        ({"labels": {"": {"turn": "maybe"}}}, "'maybe' is none of held, pause, speech, unsure"),
        ({"labels": {"": {"onset_s": 99}}}, "99 is no time within the clip's"),
        ({"labels": {"": {"onset_s": True}}}, "True is no time"),
        ({"labels": {"": {"onset_s": "1"}}}, "'1' is no time"),
    ],
)
def test_a_bad_label_file_is_one_clear_error(sheet, change, message):
    key = next(sheet.glob("key_*.json"))
    name = read_json(key)["clips"][0]["name"]
    value = {"schema": "hfd-labels/1", "sheet": key.stem.removeprefix("key_"), "rater": "A"}
    value |= {"labels": {}} | change
    if isinstance(value["labels"], dict):
        value["labels"] = {k or name: v for k, v in value["labels"].items()}
    path = sheet / "bad.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(HfdError) as caught:
        read_labels(sheet)
    path.unlink()
    assert message in str(caught.value) and "bad.json" in str(caught.value)


def test_a_file_that_is_no_json_and_a_second_file_of_a_rater_are_told(sheet):
    path = sheet / "broken.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(HfdError, match=r"broken\.json"):
        read_labels(sheet)
    path.unlink()
    first = written(sheet, "A")
    (sheet / "copy.json").write_bytes(first.read_bytes())
    with pytest.raises(HfdError, match="'A' is the rater of"):
        read_labels(sheet)
    first.unlink()
    (sheet / "copy.json").unlink()
    assert read_labels(sheet) is None
