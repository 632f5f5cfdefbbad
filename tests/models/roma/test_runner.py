"""The whole model through its interface: causality, state, rules, refusals."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hfd.duplex.events import Control, ControlKind, Metric, Text
from hfd.duplex.frames import with_frames_taken
from hfd.errors import HfdError
from hfd.models.registry import create_model
from hfd.models.roma.unit import FRAME_RULE
from tests.models.roma.helpers import TINY, comparable, make_units, run, sample, sound

pytestmark = pytest.mark.heavy


def make_model(snapshot, **settings):
    model = create_model("roma", {"model_path": str(snapshot), **TINY, **settings})
    model.load()
    return model


@pytest.fixture(scope="module")
def talkative(snapshot):
    """A model that answers every second it may."""
    return make_model(snapshot, threshold=0.0)


def answers(events):
    return [
        [e.values["decision"] for e in unit if isinstance(e, Metric) and e.name == "listen"]
        for unit in events[:-1]
    ]


def text(events):
    return "".join(e.delta for unit in events for e in unit if isinstance(e, Text))


def test_changing_the_input_after_t_changes_nothing_before_t(talkative):
    units = make_units(6)
    for changed_from in (1, 3, 5):
        changed = units[:changed_from] + make_units(6, seed=1)[changed_from:]
        before, _ = run(talkative, units)
        after, _ = run(talkative, changed)
        plain = [comparable(unit) for unit in before]
        other = [comparable(unit) for unit in after]
        assert plain[:changed_from] == other[:changed_from]
        assert plain[changed_from] != other[changed_from]


def test_cutting_the_file_short_changes_nothing_before_the_cut(talkative):
    units = make_units(6)
    whole, _ = run(talkative, units)
    cut, _ = run(talkative, units[:4])
    assert [comparable(u) for u in whole[:4]] == [comparable(u) for u in cut[:4]]


PROCESS = """
import sys; sys.path[:0] = {path}
from hfd.models.registry import create_model
from tests.models.roma.helpers import make_units, run
from tests.models.roma.test_runner import digest
import torch; torch.set_num_threads(1)
model = create_model("roma", {settings}); model.load()
print(digest(run(model, make_units(3, seed=2), sample_id="b", seed=3)))
"""


def digest(outcome):
    events, ending = outcome
    text = repr([comparable(unit) for unit in events]) + json.dumps(ending)
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_file_after_another_equals_the_file_in_a_fresh_process(talkative, snapshot):
    run(talkative, make_units(4, seed=1), sample_id="a", seed=9)
    second = digest(run(talkative, make_units(3, seed=2), sample_id="b", seed=3))
    root = Path(__file__).parents[3]
    settings = {"model_path": str(snapshot), **TINY, "threshold": 0.0}
    code = PROCESS.format(path=[str(root), str(root / "scripts")], settings=settings)
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == second


def test_a_file_that_failed_leaves_no_trace_in_the_next(talkative):
    wanted = digest(run(talkative, make_units(3)))
    units = make_units(3, seed=4)
    talkative.open(sample(units), lambda event: None)
    talkative.push(units[0])
    talkative.close()
    assert digest(run(talkative, make_units(3))) == wanted


def test_the_seed_decides_the_voice_and_nothing_else(talkative):
    units = make_units(3)
    first, again = run(talkative, units, seed=1), run(talkative, units, seed=1)
    other = run(talkative, units, seed=2)
    assert digest(first) == digest(again)
    assert text(first[0]) == text(other[0]) != ""
    assert not np.array_equal(sound(first[0]), sound(other[0]))


def test_a_silent_head_means_silence(snapshot):
    model = make_model(snapshot, threshold=1.0)
    events, ending = run(model, make_units(3))
    assert text(events) == "" and not len(sound(events))
    assert ending["end_reason"] == "input_done" and not ending["truncated"]
    probabilities = [e.values["speak_probability"] for u in events for e in u]
    assert len(probabilities) == 3 and all(0 <= p <= 1 for p in probabilities)


def test_text_is_at_most_25_tokens_a_second_and_goes_on_in_the_next(talkative):
    events, _ = run(talkative, make_units(4))
    first = [e for e in events[0] if isinstance(e, Text)]
    assert 0 < len("".join(e.delta for e in first)) <= 25
    assert answers(events)[0] == ["answer"]
    assert answers(events)[1] == ["continue"]


def test_closing_tokens_are_part_of_the_context(talkative):
    """Every cut piece adds 25 tokens, its assistant header and its closing tokens."""
    events, _ = run(talkative, make_units(3))
    sizes = [
        e.values["context_tokens"] for u in events for e in u if getattr(e, "name", "") == "listen"
    ]
    turns = talkative._turns
    piece = len(turns.to_assistant) + 25 + len(turns.close_cut)
    unit = 6 * 11 + 25 + 4
    assert sizes[1] - sizes[0] == unit + piece


def test_speech_starts_before_its_text_is_over(talkative):
    events, _ = run(talkative, make_units(1))
    kinds = [type(e).__name__ for unit in events for e in unit]
    assert kinds.index("Audio") < len(kinds) - 1 - kinds[::-1].index("Text")


def test_whole_reply_and_stream_speak_the_same_codes(snapshot):
    """Both are as long as the codes, sample for sample."""
    lengths = []
    for speech in ("stream", "whole_reply"):
        events, _ = run(make_model(snapshot, threshold=0.0, speech=speech), make_units(2))
        codes = sum(
            e.values["codes"] for u in events for e in u if getattr(e, "name", "") == "speech"
        )
        lengths.append(len(sound(events)))
        assert lengths[-1] == 480 * codes > 0
    assert lengths[0] == lengths[1]


def test_speech_runs_only_a_little_ahead_of_the_media(snapshot):
    """A second after which 4 s are spoken is worked off over the next seconds, not at once."""
    model = make_model(snapshot, threshold=0.0, lead_s=0.5, max_codes=400, continuation="stop")
    events, _ = run(model, make_units(4))
    made = np.cumsum([len(sound([unit])) for unit in events])
    assert all(total <= 24_000 * (second + 1.5) for second, total in enumerate(made[:-1]))


def test_a_last_answer_ends_in_peace(snapshot):
    """After the last second the open answer goes on to its end, or says that it was cut."""
    model = make_model(snapshot, threshold=0.0, tail_tokens=10)
    events, ending = run(model, make_units(1))
    assert ending["truncated"] and ending["end_reason"] == "answer_cut"
    assert len("".join(e.delta for e in events[-1] if isinstance(e, Text))) <= 10
    assert isinstance(events[-1][-1], Control | Metric)


def test_cut_answers_stop_where_the_settings_say_so(snapshot):
    model = make_model(snapshot, threshold=0.0, continuation="stop", while_speaking="hold")
    events, ending = run(model, make_units(3))
    ends = [e for e in events[0] if isinstance(e, Control) and e.kind is ControlKind.TURN_END]
    assert ends[0].detail == {"reason": "cut"} and ending["truncated"]
    assert answers(events)[1] in (["sustained"], ["answer"])


@pytest.mark.parametrize("size", [(181, 321), (321, 181), (64, 48)])
def test_odd_and_portrait_pictures_run(talkative, size):
    events, _ = run(talkative, make_units(2, width=size[0], height=size[1], pictures=1))
    assert text(events)


def test_the_last_second_may_be_partly_empty(talkative):
    units = make_units(2)
    short = dataclasses.replace(
        units[1],
        pcm=np.pad(units[1].pcm[:3200], (0, 12_800)),
        frames=units[1].frames[:1],
        valid_samples=3200,
    )
    events, _ = run(talkative, list(with_frames_taken([units[0], short], FRAME_RULE)))
    listen = next(e for e in events[1] if getattr(e, "name", "") == "listen")
    assert listen.values["pictures"] == [5, 5]


def test_a_file_that_is_too_long_is_refused_before_any_work(talkative):
    units = make_units(1)
    info = dataclasses.replace(sample(units), media_s=601.0)
    with pytest.raises(HfdError, match="max_media_s"):
        talkative.open(info, lambda event: None)
    assert talkative.capabilities.max_media_s == 600.0


@pytest.mark.parametrize(
    "bad, field",
    [
        ({"treshold": 0.5}, "settings.treshold"),
        ({"threshold": 1.5}, "settings.threshold"),
        ({"threshold": "high"}, "settings.threshold"),
        ({"top_k": True}, "settings.top_k"),
        ({"speech": "tts"}, "settings.speech"),
        ({"revision": "main"}, "settings.revision"),
        ({"model_path": ""}, "settings.model_path"),
        ({"max_media_s": 5000.0}, "settings.max_media_s"),
    ],
)
def test_a_wrong_setting_is_named(bad, field):
    with pytest.raises(HfdError) as error:
        create_model("roma", {"model_path": "x", **bad})
    assert error.value.field == field
