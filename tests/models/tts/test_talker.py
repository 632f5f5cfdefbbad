"""Our loop around stock qwen-tts against qwen-tts's own generate and decode."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from hfd.models.tts.codec import StreamDecoder
from hfd.models.tts.protocol import FRAME_SAMPLES
from hfd.models.tts.schedule import Job, Talker
from hfd.models.tts.speech import END, PAD, Manner, Move, Policy, Speech, TextFeed
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


def own_codes(voice, text, manner, frames, slot=0):
    """Codes of our loop with the text given token by token: [frames, groups]."""
    first, *rest = voice.tokens(text)
    sides = [*rest, END]
    voice.begin(slot, first, manner)
    out, move = [], None
    while len(out) < frames and not voice.step({slot: move}):
        out.append(voice._codes[slot].clone())
        move = Move(sides.pop(0) if sides else PAD, may_end=True)
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
    voice.begin(0, voice.tokens("x")[0], Manner("ryan", "auto", 3))
    move = None
    for _ in range(150):
        assert not voice.step({0: move})
        assert int(voice._codes.max()) < 2048
        move = Move(PAD, may_end=False)


def test_each_of_several_utterances_is_spoken_as_if_alone(loaded):
    """Three slots that begin, pause and end at different times, one of them used twice."""
    model, tokenizer = loaded
    model.generate_config = {}
    texts = ["Hello, 你好", "one two three", "x", "a fourth one"]
    manners = [Manner("ryan", "english", 1), Manner("eric", "auto", 2)] * 2
    alone = QwenVoice(model, tokenizer, captured=False, max_frames=64)
    wanted = []
    for text, manner in zip(texts, manners, strict=True):
        codes = own_codes(alone, text, manner, 24)
        wanted.append((codes, np.concatenate([alone.pcm(0, n) for n in (8, 8, 8)])))
    voice = QwenVoice(model, tokenizer, captured=False, slots=3, max_frames=64)
    chance = random.Random(5)
    heard = [([], []) for _ in texts]
    slots, left = {}, [0, 1, 2, 3]
    while slots or left:
        for slot in range(3):
            if slot not in slots and left and chance.random() < 0.3:
                number = left.pop(0)
                first, *rest = voice.tokens(texts[number])
                voice.begin(slot, first, manners[number])
                slots[slot] = (number, [None, *(Move(t, True) for t in [*rest, END])])
        going = {
            slot: moves.pop(0) if moves else Move(PAD, True)
            for slot, (_, moves) in slots.items()
            if chance.random() < 0.7
        }
        if going:
            assert not voice.step(going)
        for slot in going:
            codes, sound = heard[slots[slot][0]]
            codes.append(voice._codes[slot].clone())
            if len(codes) % 4 == 0:
                sound.append(voice.pcm(slot, 4))
            if len(codes) == 24:
                del slots[slot]
    for (codes, sound), (codes_alone, sound_alone) in zip(heard, wanted, strict=True):
        assert torch.equal(torch.stack(codes), codes_alone)
        assert np.abs(np.concatenate(sound).astype(int) - sound_alone).max() <= 2


def test_settings_that_we_cannot_honour_are_refused():
    with pytest.raises(ValueError, match="top_p"):
        make_sampling({"top_p": 0.8})


@pytest.mark.parametrize("emit", [1, 3, 8])
def test_frames_joined_are_the_decode_of_everything(loaded, emit):
    decoder = loaded[0].speech_tokenizer.model.decoder
    frames = 192  # more than the codec looks back
    codes = torch.randint(2048, (frames, 16), generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        whole = decoder(codes.T[None])[0, 0].numpy()
        stream = StreamDecoder(decoder, 2, frames, None)
        heard = []
        for number, frame in enumerate(codes.tolist(), 1):
            for slot in (0, 1):  # the other slot is busy with something else
                stream.add(slot, frame if slot else frame[::-1])
            if number % emit == 0:
                heard.append(stream.pcm(1, emit))
                stream.pcm(0, emit)
        joined = np.concatenate(heard)
        assert len(joined) == frames * FRAME_SAMPLES
        assert np.abs(joined / 32767 - whole).max() < 1e-4
        stream.reset(1)
        for frame in codes[:emit].tolist():
            stream.add(1, frame)
        assert np.array_equal(stream.pcm(1, emit), joined[: emit * FRAME_SAMPLES])


def test_late_text_is_never_lost_to_an_early_end(loaded):
    model, tokenizer = loaded
    model.generate_config = {"temperature": 50.0}  # would end after a few frames if it might
    voice = QwenVoice(model, tokenizer, captured=False, max_frames=256)
    feed, chunks, done = TextFeed(), [], []
    policy = Policy(lead_s=10.0)  # never waits

    def on_chunk(chunk):
        chunks.append(chunk)
        if chunk.frame_index == 10:
            feed.put(1, voice.tokens("yz"))
            feed.finish()

    feed.put(0, voice.tokens("abc"))
    speech = Speech(feed, Manner("ryan", "auto", 9), policy, (1,), on_chunk)
    talker = Talker(voice, policy)
    talker.submit(Job(speech, done.append))
    while not done:
        talker.tick()
    outcome = done[0]
    assert outcome.tokens == 5 and outcome.segments == 1 and outcome.pad_steps >= 5
    assert chunks[-1].text_seq_consumed == 1
    assert outcome.frames * FRAME_SAMPLES == sum(len(chunk.pcm) for chunk in chunks)
