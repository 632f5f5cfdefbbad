"""Honest runs of many kinds: what the audit must never refuse.

A set is one model over one world's samples. What varies from set to set: unit length, voice,
language, how text and sound come in pieces, length of answers, interruptions, comfort noise, a
model that always says the same, questions that are one and the same clip, and machines that are
slow, busy or have a slow disk. The sound is real speech of a known text; nothing is forged.
"""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Capabilities, DuplexModel, Identity
from hfd.errors import HfdError
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.judge.world import World, fingerprint_of

RATE = 24_000
SENTENCES = (
    "Yes, it is.",
    "No.",
    "Mm-hm.",
    "I can see three people in the park.",
    "There are 21 red cars on the bridge, and 3 of them have stopped.",
    "The man in the blue coat is crossing the street with his dog.",
    "It was built in 1996, if I remember correctly.",
    "Anne and Philip are sitting at the table near the window.",
    "It costs about $15, which is 20% more than last year.",
    "She picks up the cup, drinks from it, and puts it back on the shelf behind her.",
    "Sorry, please go on.",
    "First he opens the door, then he walks through the long hall, looks at the pictures on the "
    "wall, stops in front of the last one, and finally turns around to wave at his friends.",
)


@dataclass(frozen=True)
class Manner:
    """How one honest model behaves; see `manners` for the ranges.

    Attributes:
        unit: samples of an input unit at 16 kHz.
        pieces: ``sentence`` (the text first), ``words`` or ``characters`` (beside the sound).
        chunk: samples of an output chunk; the last one of a sentence is shorter.
        hop: codec hop that is declared, or None.
        speed: of the voice; it changes pitch and timbre too.
        sentences: least and most sentences of an answer.
        silence_s: silence after which the model takes the turn.
        yields: whether it stops when the user speaks, or talks on.
        noise: comfort noise in every unit without speech.
        same: whether every sample gets the same answer.
        ahead: sound is sent at once instead of in step with its playing.
        compute_s: mean compute of a unit; `stall` the chance of ten times that and 30 ms.
        clock: of the run.
        chinese: whether it speaks Chinese, where such clips are given.
    """

    unit: int = 1280
    pieces: str = "words"
    chunk: int = 1920
    hop: int | None = 1920
    speed: float = 1.0
    sentences: tuple[int, int] = (1, 2)
    silence_s: float = 0.6
    yields: bool = True
    noise: bool = False
    same: bool = False
    ahead: bool = False
    compute_s: float = 0.002
    stall: float = 0.0
    clock: str = "virtual"
    chinese: bool = False


def manners(count: int, seed: int = 0) -> list[Manner]:
    """`count` manners, drawn at random but the same on every machine."""
    draw = np.random.default_rng(seed)

    def one_of(*values):
        return values[int(draw.integers(len(values)))]

    found = []
    for _ in range(count):
        chunk = one_of(480, 1920, 2400, 5760)
        least = one_of(1, 1, 2, 4)
        found.append(
            Manner(
                unit=one_of(320, 640, 1280, 1280, 3200, 7680, 16000),
                pieces=one_of("sentence", "words", "characters"),
                chunk=chunk,
                hop=one_of(chunk, chunk, None),
                speed=float(draw.uniform(0.85, 1.2)),
                sentences=(least, least + 1),
                silence_s=float(draw.uniform(0.25, 0.9)),
                yields=one_of(True, True, False),
                noise=one_of(True, False, False, False),
                same=one_of(True, False, False, False),
                ahead=one_of(True, False),
                compute_s=one_of(0.0, 0.0, 0.002, 0.01),
                stall=one_of(0.0, 0.0, 0.02),
                clock="arrival" if draw.uniform() < 0.15 else "virtual",
                chinese=draw.uniform() < 0.2,
            )
        )
    return found


@functools.cache
def spoken(sentence: str, speed: float) -> np.ndarray:
    """A sentence as float32 at 24 kHz in a voice of this speed."""
    pcm = np.asarray(_voice()(sentence, seed=[1]), np.float32)
    return pcm if speed == 1.0 else soxr.resample(pcm, RATE * speed, RATE)


@functools.cache
def _voice():
    import hibari  # in the embedded model's environment, not in a cluster's

    return hibari.Hibari(threads=1)


def chinese_clips(folder: Path | None) -> list[tuple[str, np.ndarray]]:
    """(text, sound at 24 kHz) of every ``<name>.wav`` with its ``<name>.txt`` in a folder."""
    clips = []
    for wav in sorted(folder.glob("*.wav")) if folder else []:
        sound, own = soundfile.read(wav, dtype="float32")
        text = wav.with_suffix(".txt").read_text(encoding="utf-8").strip()
        clips.append((text, soxr.resample(sound, own, RATE)))
    return clips


class Honest(DuplexModel):
    """A model of one manner; it computes nothing before its time and forges nothing."""

    def __init__(self, manner: Manner, chinese: Sequence[tuple[str, np.ndarray]] = ()) -> None:
        self.manner = manner
        self.chinese = chinese if manner.chinese else ()

    @property
    def capabilities(self):
        manner = self.manner
        return Capabilities(
            manner.unit, RATE, manner.clock, "native_talker", codec_hop_samples=manner.hop
        )

    def load(self):
        return Identity("honest", "b" * 64, dtypes={"bfloat16": 290})

    def open(self, sample, emit):
        self.emit = emit
        self.random = np.random.default_rng(1 if self.manner.same else sample.seed)
        self.busy = np.random.default_rng(sample.seed)
        self.tokens, self.quiet_s, self.heard = 0, 0.0, False
        self.waiting: list[tuple[str, np.ndarray]] = []
        self.media_s = self.plays_until = 0.0

    def push(self, unit):
        self._compute()
        self.media_s = unit.t1
        self.tokens += 5
        self.emit(Metric("prefill", {"context_tokens": self.tokens}))
        loud = float(np.abs(unit.pcm).max()) > 0.02
        self.quiet_s = 0.0 if loud else self.quiet_s + len(unit.pcm) / 16_000
        if loud:
            self.heard = True
            speaking = bool(self.waiting) or self.plays_until > self.media_s
            if speaking and self.manner.yields:
                self.waiting, self.plays_until = [], self.media_s
                self.emit(Control(ControlKind.INTERRUPT))
        elif self.heard and self.quiet_s >= self.manner.silence_s:
            self.heard = False
            self.waiting = self._answer()
            self.emit(Control(ControlKind.SPEAK))
        self._speak()

    def finish(self):
        while self.waiting:
            self.media_s = self.plays_until
            self._speak()
        return {"end_reason": "media_end", "truncated": False}

    def _compute(self):
        if not self.manner.compute_s:
            return
        seconds = float(self.busy.gamma(4, self.manner.compute_s / 4))
        if self.busy.uniform() < self.manner.stall:
            seconds = 10 * seconds + 0.03
        time.sleep(seconds)

    def _speak(self):
        """Emit what is due: sound that plays within a unit, or everything where it goes ahead."""
        until = self.media_s + self.manner.unit / 16_000
        spoke = False
        while self.waiting and (self.manner.ahead or self.plays_until < until):
            text, pcm = self.waiting.pop(0)
            if text:
                self.emit(Text(text))
            if len(pcm):
                self.emit(Audio(pcm))
                self.plays_until = max(self.plays_until, self.media_s) + len(pcm) / RATE
            spoke = True
            if not self.waiting:
                self.emit(Control(ControlKind.TURN_END))
        if self.manner.noise and not spoke and self.plays_until <= self.media_s:
            count = self.manner.unit * RATE // 16_000 // self.manner.chunk * self.manner.chunk
            if count:
                self.emit(Audio((0.002 * self.busy.standard_normal(count)).astype(np.float32)))
                self.plays_until = self.media_s + count / RATE

    def _answer(self) -> list[tuple[str, np.ndarray]]:
        """(text, sound) pieces in order; either may be empty."""
        least, most = self.manner.sentences
        pieces = []
        for _ in range(int(self.random.integers(least, most + 1))):
            if self.chinese:
                text, pcm = self.chinese[int(self.random.integers(len(self.chinese)))]
                pcm = soxr.resample(pcm, RATE * self.manner.speed, RATE)
            else:
                text = SENTENCES[int(self.random.integers(len(SENTENCES)))]
                pcm = spoken(text, self.manner.speed)
            pieces += self._pieces(text + " ", pcm)
        return pieces

    def _pieces(self, text: str, pcm: np.ndarray) -> list[tuple[str, np.ndarray]]:
        step = self.manner.chunk
        sounds = [pcm[at : at + step] for at in range(0, len(pcm), step)]
        if self.manner.pieces == "sentence":
            texts = [text]
        elif self.manner.pieces == "words" and not self.chinese:
            texts = [word + " " for word in text.split()]
        else:
            texts = [text[at : at + 2] for at in range(0, len(text), 2)]
        # Text is a little ahead of its sound, as a talker's is.
        places = np.linspace(0, max(0, len(sounds) * 0.8), len(texts), endpoint=False).astype(int)
        found = []
        for number, sound in enumerate(sounds):
            words = "".join(t for t, at in zip(texts, places, strict=True) if at == number)
            found.append((words, sound))
        return found


def run_honest(
    world: World, name: str, manner: Manner, chinese: Sequence[tuple[str, np.ndarray]] = ()
) -> Path:
    """Run a manner over the world's samples into ``results/<name>``; real time side by side."""
    results = world.root / "results" / name

    def one(sample):
        model = Honest(manner, chinese)
        run = Run(name, "honest", {}, 1, model.load())
        out = results / sample.sample_id
        out.mkdir(parents=True)
        try:
            run_sample(model, run, sample, out, fingerprint=fingerprint_of(run, sample))
        except HfdError:
            if manner.clock == "virtual":
                raise
            shutil.rmtree(out)  # the machine was too busy for real time: no result

    with ThreadPoolExecutor(16 if manner.clock == "arrival" else 1) as pool:
        list(pool.map(one, world.samples))
    return results
