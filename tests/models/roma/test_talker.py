"""The talker's own loop gives upstream's codes, and its sampling upstream's choices."""

import pytest
import torch

from hfd.models.graphs.sampling import Sampling
from hfd.models.roma import unit as units
from hfd.models.roma.prompt import make_turns
from hfd.models.roma.settings import parse_settings
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.vocoder import Vocoder, block_noise
from hfd.models.roma.voice import ALL, Markers, Voice
from tests.models.roma.helpers import make_units
from tests.models.roma.test_thinker import GRID, Stream

pytestmark = pytest.mark.heavy
CODES = 40


def upstream_codes(stream, monkeypatch):
    """Text and codes of upstream's `generate`, greedy, over the stream's sequence."""
    model = stream.parts.model
    seen = {}

    def keep(code, **_):
        seen["codes"] = code[0].tolist()
        return torch.zeros(480)

    monkeypatch.setattr(model.token2wav, "forward", keep)
    model.thinker.rope_deltas = model.talker.rope_deltas = None
    talker = model.talker
    whole = stream.whole()
    turns = make_turns(stream.parts.tokenizer, "")
    ids, _ = model.generate(
        # Upstream would pass the video frames to the talker too, which refuses them.
        thinker_pixel_values_videos=whole.pop("pixel_values_videos"),
        **whole,
        thinker_max_new_tokens=12,
        thinker_do_sample=False,
        thinker_eos_token_id=[turns.end, turns.pause],
        talker_do_sample=False,
        talker_max_new_tokens=CODES,
        talker_eos_token_id=[talker.codec_pad_token, talker.codec_eos_token],
    )
    return ids[0, len(stream.ids) :].tolist(), seen["codes"]


def make_voice(steps, parts, settings):
    talker = parts.model.talker
    spoken = []

    class Recorder(Vocoder):
        def add(self, code):
            spoken.append(code)

    marks = [parts.speaker.bos_token, talker.text_eos_token, talker.text_pad_token]
    voice = Voice(
        steps,
        Markers(*steps.embed(marks)),
        frozenset([talker.codec_pad_token, talker.codec_eos_token]),
        settings.max_codes,
        lambda seed: Recorder(steps, block_noise(seed, 24, 80), 12, whole=False),
        play=lambda pcm: None,
        report=lambda facts: None,
        check_position=lambda last: None,
    )
    return voice, spoken


def own_codes(stream, text, settings, late=False):
    """Codes of the project's loop over the same context and text."""
    parts, config = stream.parts, stream.config
    steps = EagerSteps(parts, settings)
    steps.begin(GRID)
    voice, spoken = make_voice(steps, parts, settings)
    ids = torch.tensor(stream.ids)
    media = (ids == config.video_token_index) | (ids == config.audio_token_index)
    written = steps.embed(stream.ids).masked_fill(media[:, None], 0)
    voice.read(torch.cat(stream.hidden) + written, torch.cat(stream.positions, dim=1))
    piece = voice.begin_piece(stream.position, 0.0, seed=1)
    for token in text:
        stream.text([token])
        piece.texts.append(stream.hidden[-1][0] + steps.embed([token])[0])
        if late:
            voice.advance(ALL)
    voice.close_piece(piece)
    voice.advance(ALL)
    return spoken


@pytest.mark.parametrize("late", [False, True], ids=["text first", "speech follows text"])
def test_greedy_codes_equal_upstream(parts, snapshot, monkeypatch, late):
    stream = Stream(parts, snapshot)
    turns = make_turns(parts.tokenizer, "Be brief.")
    settings = parse_settings({"model_path": str(snapshot), "temperature": 0.0, "max_codes": CODES})
    with torch.no_grad():
        stream.text(turns.opening)
        for unit in make_units(3):
            stream.unit(unit)
        stream.text(turns.to_assistant)
        text, wanted = upstream_codes(stream, monkeypatch)
        # Upstream never feeds its last token, so the talker never reads it.
        got = own_codes(stream, text[:-1], settings, late)
    assert len(wanted) > 5
    assert got == wanted[: len(got)]
    assert len(got) in (len(wanted), CODES)


def test_every_draw_picks_the_code_upstream_could_pick():
    """Top-k, top-p, temperature and penalty keep exactly the set upstream's processors keep."""
    from transformers import LogitsProcessorList
    from transformers.generation import logits_process as hf

    generator = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(50, generator=generator)
    seen = torch.rand(50, generator=generator) < 0.3
    sampling = Sampling(temperature=0.9, top_k=12, top_p=0.8, repetition_penalty=1.3)
    processors = LogitsProcessorList(
        [
            hf.RepetitionPenaltyLogitsProcessor(1.3),
            hf.SuppressTokensLogitsProcessor([7]),
            hf.TemperatureLogitsWarper(0.9),
            hf.TopKLogitsWarper(12),
            hf.TopPLogitsWarper(0.8),
        ]
    )
    wanted = torch.softmax(processors(seen.nonzero().T, logits[None].clone())[0], dim=0)
    banned = torch.zeros(50, dtype=torch.bool)
    banned[7] = True
    draws = (torch.arange(20_000) + 0.5) / 20_000
    picks = torch.stack([sampling.pick(logits, draw, seen, banned) for draw in draws])
    share = torch.bincount(picks, minlength=50) / len(draws)
    assert (share - wanted).abs().max() < 1e-3


def test_context_that_arrives_during_speech_is_read_after_it(parts, snapshot):
    """The second piece speaks the same codes whether the first was spoken early or late."""
    settings = parse_settings({"model_path": str(snapshot), "max_codes": 30})
    spoken = []
    for early in (True, False):
        stream = Stream(parts, snapshot)
        steps = EagerSteps(parts, settings)
        steps.begin(GRID)
        voice, codes = make_voice(steps, parts, settings)
        with torch.no_grad():
            for turn in range(2):
                start = stream.position
                stream.text(list(b"some words"))
                states = stream.hidden[-1] + steps.embed(list(b"some words"))
                voice.read(states, units.text_positions(start, 10))
                piece = voice.begin_piece(stream.position, float(turn), seed=turn)
                piece.texts.extend(states[:4])
                voice.close_piece(piece)
                if early:
                    voice.advance(ALL)
            voice.advance(ALL)
        spoken.append(codes)
    assert spoken[0] == spoken[1]
