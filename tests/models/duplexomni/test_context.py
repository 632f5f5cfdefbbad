"""Whether a file fits is told from its length and size, before the first request."""

from __future__ import annotations

import pytest

from hfd.duplex.frames import FrameSize
from hfd.duplex.model import SampleInfo
from hfd.errors import HfdError
from hfd.models.duplexomni.context import Limits, Need, context_need
from hfd.models.media import sent_size
from tests.fakes.duplexomni import Thinker
from tests.models.duplexomni.conftest import drive, units

OFFICIAL = 32386


def opened(model, seconds, tmp_path, width=1280, height=720):
    events = []
    model.open(SampleInfo("s", seconds, width, height, 1, tmp_path), events.append)
    model.close()
    return events[0].values


@pytest.mark.parametrize(
    ("seconds", "tokens", "side", "fits"),
    [
        (30, OFFICIAL, 784, True),
        (96, OFFICIAL, 784, True),
        (98, OFFICIAL, 784, False),
        (195, 65536, 784, True),
        (198, 65536, 784, False),
        (120, OFFICIAL, 784, False),
        (120, OFFICIAL, 448, True),
    ],
)
def test_the_verdict_on_a_file_comes_before_the_first_request(
    servers, model_of, tmp_path, seconds, tokens, side, fits
):
    thinker = servers(Thinker, max_model_len=tokens)
    model = model_of(thinker, picture_long_side=side)
    if fits:
        assert opened(model, seconds, tmp_path)["thinker_tokens"] <= tokens
    else:
        with pytest.raises(HfdError, match=f"the thinker has {tokens}"):
            opened(model, seconds, tmp_path)
    assert thinker.posts == 0


def test_the_refusal_tells_the_numbers_and_a_remedy_that_works(servers, model_of, tmp_path):
    thinker = servers(Thinker, max_model_len=OFFICIAL)
    with pytest.raises(HfdError) as refusal:
        opened(model_of(thinker, picture_long_side=784), 120, tmp_path)
    need = context_need(120 * 16000, 1280, 720, picture_interval=4, long_side=784)
    assert f"needs {need.thinker_tokens} tokens" in refusal.value.problem
    assert f"THINKER_MAX_MODEL_LEN (stack.max_model_len) to {need.thinker_tokens}" in str(
        refusal.value
    )
    side = int(refusal.value.remedy.split("picture_long_side to ")[1].split(",")[0])
    assert opened(model_of(thinker, picture_long_side=side), 120, tmp_path)["slices"] == 250
    with pytest.raises(HfdError):
        opened(model_of(thinker, picture_long_side=side + 32), 120, tmp_path)


def test_the_need_of_a_minute_at_the_official_size():
    """60 s: 125 slices of 74, 32 frames of 24 x 14 tokens (768 x 448 pixels after rounding)."""
    need = context_need(60 * 16000, 1920, 1080, picture_interval=4, long_side=784)
    assert need == Need(125, 32, 336, 80 + 125 * 74 + 32 * (336 + 9), 125 * 48)


@pytest.mark.parametrize(
    ("size", "scaled"),
    [
        ((1280, 720), (784, 441)),
        ((720, 1280), (441, 784)),
        ((9, 9), (784,) * 2),
        ((640, 480), (784, 588)),
        ((854, 480), (784, 440)),
    ],
)
def test_the_long_side_rules_whichever_way_up(size, scaled):
    """Sizes as the authors' own resize gives them (tests/peers compares)."""
    assert sent_size(*size, FrameSize("long_side", 784, enlarge=True)) == scaled


def test_a_file_beyond_the_sound_clips_of_one_request_is_refused(model_of, tmp_path):
    model = model_of(picture_interval=888)
    assert model.capabilities.max_media_s == pytest.approx(426.24)
    with pytest.raises(HfdError, match=f"889 slices \\({Limits(0).audios} fit\\)"):
        opened(model, 426.4, tmp_path, 64, 48)


def test_the_servers_own_count_is_kept_with_every_slice(model_of, tmp_path):
    events = drive(model_of(), units(4), tmp_path)
    counts = [e.values["context_tokens"] for e in events if getattr(e, "name", "") == "slice"]
    assert len(counts) == 4 and counts == sorted(counts) and counts[0] > 0
