"""Full-Duplex-Bench's own scorers on made-up answers, against our counts of the same words."""

import importlib.util
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from hfd.judge.intervals import Interval
from hfd.judge.metrics import Answer
from hfd.judge.official import official_scores, word_times

COMMIT = "d7336bda1385872b83b48a8d45d9c0003836a60d"
N = 200


@pytest.fixture
def scorer(clone):
    """Import one of their scripts by name."""
    folder = clone("Full-Duplex-Bench", COMMIT) / "v1_v1.5" / "evaluation"

    def load(name):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def answers():
    """Silence, single words, short and long answers, early and late ones, of 0 to 3 segments."""
    random = np.random.default_rng(4)
    for _ in range(N):
        starts = np.sort(random.uniform(0, 9, random.integers(0, 4)))
        segments, texts = [], []
        for start in starts:
            if segments and start < segments[-1].end + 0.3:
                continue
            end = float(start + random.choice([0.15, 0.4, 0.9, 2.5]))
            segments.append(Interval(float(start), end))
            texts.append((float(start), "word " * int(random.integers(0, 6))))
        yield Answer(segments, texts, (), 24000, 20.0)


def write(root, made, window, name, annotation):
    for k, answer in enumerate(made):
        folder = root / str(k)
        folder.mkdir(parents=True)
        words = word_times(answer, *window)
        chunks = [{"text": "word", "timestamp": [w.start, w.end]} for w in words]
        (folder / "output.json").write_text(json.dumps({"text": "", "chunks": chunks}))
        (folder / name).write_text(json.dumps(annotation))


def printed(capsys, what):
    return float(re.search(rf"{what}: +([\d.e-]+)", capsys.readouterr().out)[1])


def test_their_pause_scorer_counts_what_we_count(scorer, tmp_path, capsys):
    made = list(answers())
    write(tmp_path, made, (0.0, 8.0), "pause.json", [])
    scorer("eval_pause_handling").eval_pause_handling(str(tmp_path))
    ours = [official_scores(one, {"fdb_pause_tor": [0.0, 8.0]})["fdb_pause_tor"] for one in made]
    assert 0.1 < np.mean(ours) < 0.9
    assert printed(capsys, "Average take turn") == pytest.approx(np.mean(ours))


def test_their_interruption_scorer_counts_and_times_what_we_do(scorer, tmp_path, capsys):
    made = list(answers())
    said = [{"context": "a", "interrupt": "b", "timestamp": [2.0, 4.0]}]
    write(tmp_path, made, (4.0, 10.0), "interrupt.json", said)
    text = "Analysis: fine.\nI would rate the AI's response as 5"
    reply = SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))])
    chat = SimpleNamespace(completions=SimpleNamespace(create=lambda **_: reply))
    scorer("eval_user_interruption").eval_user_interruption(
        str(tmp_path), SimpleNamespace(chat=chat)
    )
    found = [official_scores(one, {"fdb_interruption_tor": [4.0, 10.0]}) for one in made]
    output = capsys.readouterr().out
    turns = np.mean([one["fdb_interruption_tor"] for one in found])
    latency = np.mean([s for one in found if (s := one["fdb_latency_s"]) is not None])
    assert float(re.search(r"Average take turn: +([\d.]+)", output)[1]) == pytest.approx(turns)
    assert float(re.search(r"Average latency: +([\d.]+)", output)[1]) == pytest.approx(latency)
