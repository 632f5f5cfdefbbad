"""Our loop around stock qwen-tts against qwen-tts's own generate and decode."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hfd.models.tts.codec import CONTEXT_FRAMES, WindowDecoder, _window_constants
from hfd.models.tts.protocol import FRAME_SAMPLES
from hfd.models.tts.speech import END, PAD, Manner, Policy, Speech, TextFeed
from hfd.models.tts.talker import QwenVoice, make_sampling

pytestmark = pytest.mark.heavy
TEXT = "Hello, 你好"
GREEDY = {"do_sample": False, "subtalker_dosample": False}


def official_codes(model, tokenizer, text, speaker, language, frames):
    """Codes of the model's own streaming-prompt generate, all text known: [frames, groups]."""
    ids = tokenizer.encode(
        f"<|im_start|>assistant\n{text}<|im_end|>\n<|im_start|>assistant\n",
        add_special_tokens=False,
        return_tensors="pt",
    )
    codes, _ = model.generate(
        input_ids=[ids],
        languages=[language],
        speakers=[speaker],
        do_sample=False,
        subtalker_dosample=False,
        max_new_tokens=frames + 1,
    )
    return codes[0]


def own_codes(voice, text, manner, frames):
    """Codes of our loop with the text given token by token: [frames, groups]."""
    first, *rest = voice.tokens(text)
    sides = [*rest, END]
    voice.begin(first, manner)
    out = []
    while len(out) < frames:
        voice.frame()
        out.append(voice._codes.clone())
        if voice.advance(sides.pop(0) if sides else PAD, may_end=True):
            break
    return torch.stack(out)


@pytest.mark.parametrize(
    ("speaker", "language"), [("ryan", "english"), ("ryan", "auto"), ("eric", "auto")]
)
def test_text_by_the_token_gives_the_codes_of_the_models_own_generate(loaded, speaker, language):
    model, tokenizer = loaded
    model.generate_config = GREEDY
    voice = QwenVoice(model, tokenizer, captured=False, max_frames=64)
    expected = official_codes(model, tokenizer, TEXT, speaker, language, 30)
    own = own_codes(voice, TEXT, Manner(speaker, language, 0), 30)
    assert len(set(own[:, 0].tolist())) > 10  # the random model says something
    assert torch.equal(own, expected[:30])


def test_a_seed_repeats_and_another_differs(loaded):
    model, tokenizer = loaded
    model.generate_config = {}
    voice = QwenVoice(model, tokenizer, captured=False, max_frames=64)
    runs = [own_codes(voice, TEXT, Manner("ryan", "english", seed), 12) for seed in (1, 2, 1)]
    assert torch.equal(runs[0], runs[2]) and not torch.equal(runs[0], runs[1])


def test_no_control_code_is_ever_drawn_and_none_ends_speech_before_it_may(loaded):
    model, tokenizer = loaded
    model.generate_config = {"temperature": 50.0}  # every code is about as likely
    voice = QwenVoice(model, tokenizer, captured=False, max_frames=256)
    voice.begin(voice.tokens("x")[0], Manner("ryan", "auto", 3))
    for _ in range(150):
        voice.frame()
        assert int(voice._codes.max()) < 2048
        assert not voice.advance(PAD, may_end=False)


def test_settings_that_we_cannot_honour_are_refused():
    with pytest.raises(ValueError, match="top_p"):
        make_sampling({"top_p": 0.8})


@pytest.mark.parametrize("emit", [1, 4, 8])
def test_frames_joined_are_the_decode_of_everything(loaded, emit):
    decoder = loaded[0].speech_tokenizer.model.decoder
    frames = 96  # more than one window
    codes = torch.randint(2048, (frames, 16), generator=torch.Generator().manual_seed(5))
    window = WindowDecoder(decoder, None)
    with torch.inference_mode():
        whole = decoder(codes.T[None])[0, 0].numpy()
        heard = []
        for number, frame in enumerate(codes, 1):
            window.add(frame)
            if number % emit == 0:
                heard.append(window.pcm(emit))
    joined = np.concatenate(heard) / 32767
    assert len(joined) == frames * FRAME_SAMPLES
    full = CONTEXT_FRAMES * FRAME_SAMPLES
    assert np.abs(joined[:full] - whole[:full]).max() < 1e-4  # nothing is missing yet
    error = np.sqrt(np.mean((joined - whole) ** 2) / np.mean(whole**2))
    assert error < 5e-3


def test_the_window_that_is_captured_on_a_gpu_decodes_as_the_codecs_own_forward(loaded):
    """The composition with constants, run plainly: full window and one padded behind."""
    decoder = loaded[0].speech_tokenizer.model.decoder
    window = WindowDecoder(decoder, None)
    weight = next(decoder.parameters())
    with torch.inference_mode():
        window._rope, window._mask = _window_constants(
            decoder.pre_transformer, window._window, weight
        )
        window._wav = torch.zeros(window._window * FRAME_SAMPLES)
        window._codes.random_(2048, generator=torch.Generator().manual_seed(6))
        window._decode_window()
        expected = decoder(window._codes)[0, 0]
        assert torch.allclose(window._wav, expected, atol=1e-4)
        short = decoder(window._codes[..., :10])[0, 0]
        assert torch.allclose(window._wav[: 10 * FRAME_SAMPLES], short, atol=1e-4)


def test_late_text_is_never_lost_to_an_early_end(loaded):
    model, tokenizer = loaded
    model.generate_config = {"temperature": 50.0}  # would end after a few frames if it might
    voice = QwenVoice(model, tokenizer, captured=False, max_frames=256)
    feed, chunks = TextFeed(), []
    policy = Policy(starve_wait_s=0.01, pad_interval_s=0.01)

    def on_chunk(chunk):
        chunks.append(chunk)
        if chunk.frame_index == 10:
            feed.put(1, voice.tokens("yz"))
            feed.finish()

    feed.put(0, voice.tokens("abc"))
    outcome = Speech(voice, feed, Manner("ryan", "auto", 9), policy, 1, on_chunk).run()
    assert outcome.tokens == 5 and outcome.segments == 1 and outcome.pad_steps >= 5
    assert chunks[-1].text_seq_consumed == 1
    assert outcome.frames * FRAME_SAMPLES == sum(len(chunk.pcm) for chunk in chunks)
