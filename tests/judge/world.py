"""A small data set with human speech, and honest models that answer it, for the judge's tests."""

from __future__ import annotations

import json
import math
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import soundfile

from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Capabilities, DuplexModel, Identity
from hfd.files import sha256_file
from hfd.jobs.spec import Recipe
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.judge.heard import note
from tests.judge.speech_clips import TEXT, part

HOP = 1920
WEIGHTS = "a" * 64


@dataclass(frozen=True)
class World:
    """A repository root with data, and the samples of its manifest."""

    root: Path
    samples: list[Sample]


def build_world(
    root: Path, hesitation: int = 6, other: int = 2, questions: str = "varied"
) -> World:
    """Make compiled files, adapters and the manifest; the first id is Chinese with spaces.

    Args:
        questions: ``varied`` clips and times, ``one_clip`` at varied times, or all ``alike``.
    """
    (root / "data" / "videos").mkdir(parents=True)
    (root / "data" / "adapters").mkdir()
    rows = []
    for k in range(hesitation + other):
        sample_id = "犹豫 样本 '1'" if k == 0 else f"s{k:02d}"
        is_hesitation = k < hesitation
        clip = k if questions == "varied" else 0
        events = _events(0 if questions == "alike" else k, is_hesitation)
        frames = math.ceil(events[-1]["end"] * 5) + 15
        _compile(root / "data" / "videos" / f"{sample_id}.mp4", frames, events, clip)
        adapter = {"sample_id": sample_id, "events": events}
        (root / "data" / "adapters" / f"{sample_id}.json").write_text(
            json.dumps(adapter, ensure_ascii=False), encoding="utf-8"
        )
        rows.append(
            {
                "sample_id": sample_id,
                "task": "hesitation" if is_hesitation else "qa",
                "video": f"data/videos/{sample_id}.mp4",
                "adapter": f"data/adapters/{sample_id}.json",
                "duration_seconds": frames / 5,
            }
        )
    manifest = root / "data" / "manifest.jsonl"
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return World(root, read_manifest(manifest, root))


def _events(k: int, is_hesitation: bool) -> list[dict]:
    start = 0.4 + 0.13 * k
    if not is_hesitation:
        return [{"start": start, "end": start + 2.4, "text": "What is this?", "role": "question"}]
    prefix, gap, question = 1.5 + 0.07 * k, 0.5 + 0.21 * k, 2.2 + 0.05 * k
    q0 = start + prefix + gap
    return [
        {
            "role": "first_question",
            "start": round(start, 3),
            "end": round(start + prefix, 3),
            "text": "What is the man in the red coat doing?",
            "spoken_text": "What is the man",
        },
        {
            "role": "second_question",
            "start": round(q0, 3),
            "end": round(q0 + question, 3),
            "text": "No, how many people are there? 不，有几个人？",
            "spoken_text": "No, how many people are there? 不，有几个人？",
        },
    ]


def _compile(path: Path, frames: int, events: list[dict], k: int) -> None:
    sound = np.zeros(frames * 3200, np.float32)
    for n, event in enumerate(events):
        at = round(event["start"] * 16000)
        clip = part(
            "endgame_nagg_nell", 16000, 1.0 + 3.1 * n + 0.9 * k, event["end"] - event["start"]
        )
        sound[at : at + len(clip)] = clip[: len(sound) - at]
    wav = path.with_suffix(".wav")
    soundfile.write(wav, sound, 16000, subtype="PCM_16")
    # fmt: off
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y",
         "-f", "lavfi", "-i", f"testsrc=size=96x64:rate=5:duration={frames / 5}", "-i", wav,
         "-frames:v", str(frames), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p",
         "-c:a", "flac", "-strict", "-2", "-f", "mp4", f"file:{path}"],
        check=True,
    )
    # fmt: on
    wav.unlink()


class Talker(DuplexModel):
    """Answers after some silence, in whole codec frames, while the file plays; honest throughout.

    Settings: ``silence_s`` (how long the user must be silent), ``clock``, ``unit``, ``voice``.
    """

    def __init__(self, settings):
        self.settings = settings
        self.unit = settings.get("unit", 1280)

    @property
    def capabilities(self):
        return Capabilities(
            self.unit,
            24000,
            self.settings.get("clock", "virtual"),
            self.settings.get("voice_origin", "native_talker"),
            codec_hop_samples=HOP,
        )

    def load(self):
        return Identity("talker", WEIGHTS, dtypes={"bfloat16": 290})

    def open(self, sample, emit):
        self.emit = emit
        self.random = np.random.default_rng(self.settings.get("seed", sample.seed))
        self.tokens = 0
        self.quiet_s = 0.0
        self.heard = False
        self.left: list[tuple[str, np.ndarray]] = []
        self.wait_units = 0
        emit(Metric("prefix", {"context_tokens": 0}))

    def push(self, unit):
        self.tokens += 3
        self.emit(Metric("prefill", {"context_tokens": self.tokens}))
        loud = float(np.abs(unit.pcm).max()) > 0.02
        if loud:
            self.heard, self.quiet_s = True, 0.0
            if self.left:
                self.left = []
                self.emit(Control(ControlKind.INTERRUPT, {"why": "user speaks"}))
        else:
            self.quiet_s += len(unit.pcm) / 16000
        if self.heard and not loud and self.quiet_s >= self.settings.get("silence_s", 0.7):
            self.heard = False
            self.wait_units = int(self.random.integers(0, 6))
            self.left = self._answer()
            self.emit(Control(ControlKind.SPEAK))
        self._speak()

    def _speak(self):
        if self.wait_units:
            self.wait_units -= 1
            return
        if self.left:
            word, sound = self.left.pop(0)
            time.sleep(float(self.random.uniform(0.001, 0.02)))
            self.emit(Text(word))
            time.sleep(float(self.random.uniform(0.001, 0.01)))
            self.emit(Audio(sound))
            self.wait_units = self.settings.get("word_units", 4) - 1
            if not self.left:
                self.emit(Control(ControlKind.TURN_END))

    def _answer(self):
        """Words and sound, one word for four codec frames (0.32 s)."""
        count = int(self.random.integers(4, 9))
        start = float(self.random.uniform(0.5, 25.0))
        sound = part(
            self.settings.get("voice", "two_cities"), 24000, start, count * 4 * HOP / 24000
        )
        first = int(self.random.integers(0, len(TEXT) - 9))
        return [
            (TEXT[first + n] + " ", sound[n * 4 * HOP : (n + 1) * 4 * HOP]) for n in range(count)
        ]

    def finish(self):
        while self.left:
            self.wait_units = 0
            self._speak()
        return {"end_reason": "media_end", "truncated": False}


class Mute(Talker):
    """Hears everything, says nothing: a valid result."""

    def _answer(self):
        return []


def run_model(world: World, name: str, model_class=Talker, ids=None, **settings) -> Path:
    """Run a model over the world's samples into ``results/<name>``."""
    model = model_class(settings)
    run = Run(name, "test", settings, 1, model.load())
    results = world.root / "results" / name
    for sample in world.samples:
        if ids is None or sample.sample_id in ids:
            out = results / sample.sample_id
            out.mkdir(parents=True)
            run_sample(model, run, sample, out, fingerprint=fingerprint_of(run, sample))
            note(out)
    return results


def fingerprint_of(run: Run, sample: Sample) -> str:
    """What a worker would put into the result's provenance."""
    recipe = Recipe(run.module, run.settings, run.seed, {})
    return recipe.fingerprint(sha256_file(sample.video), sha256_file(sample.adapter))
