"""Cheats with sound: the model's voice, in the trace's chunks or in the wav alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import av.filter
import numpy as np
import soundfile
import soxr

from tests.judge.cheats.common import each, one
from tests.judge.forge import Forgery
from tests.judge.speech_clips import part, reading


def other_voice_in_other_chunks(results: Path) -> None:
    forgery = one(results)
    for n, line in enumerate(forgery.of("audio")):
        forgery.set_pcm(line, _stranger(n, 7600))
    forgery.queue()
    forgery.seal()


def other_voice_in_whole_frames(results: Path) -> None:
    for forgery in each(results)[1:4]:
        for n, line in enumerate(forgery.of("audio")):
            forgery.set_pcm(line, _stranger(n, line["samples"]))
        forgery.seal()


def _stranger(n: int, samples: int) -> np.ndarray:
    """Another reader, fifteen semitones higher."""
    sound = part("endgame_nagg_nell", 24000, 3.0 + 0.4 * n, samples * 2.4 / 24000 + 0.01)
    sound = soxr.resample(sound, 24000 * 2.4, 24000)[:samples]
    return np.rint(20000 * sound)


def silent_sound(results: Path) -> None:
    for forgery in each(results):
        for line in forgery.of("audio"):
            forgery.set_pcm(line, np.zeros(line["samples"]))
        forgery.seal()


def inaudible_sound(results: Path) -> None:
    noise = np.random.default_rng(1)
    for forgery in each(results):
        for line in forgery.of("audio"):
            forgery.set_pcm(line, noise.integers(-20, 21, line["samples"]))
        forgery.seal()


def noise_for_speech(results: Path) -> None:
    """Loud enough to be heard, but no voice."""
    noise = np.random.default_rng(1)
    for forgery in each(results):
        for line in forgery.of("audio"):
            forgery.set_pcm(line, noise.integers(-900, 901, line["samples"]))
        forgery.seal()


def duplicated_sound(results: Path) -> None:
    first, second = each(results)[3:5]
    sound = [first.pcm(line) for line in first.answer() if line["kind"] == "audio"]
    lines = [line for line in second.answer() if line["kind"] == "audio"]
    second.drop([line for line in second.of("audio") if line not in lines[:1]])
    second.drop([line for line in second.of("control") if "cut_at" in line])
    first.drop([line for line in first.of("text", "audio") if line not in first.answer()])
    first.drop([line for line in first.of("control") if "cut_at" in line])
    second.set_pcm(lines[0], np.concatenate(sound))
    first.set_pcm(next(line for line in first.of("audio")), np.concatenate(sound))
    first.drop(first.of("audio")[1:])
    second.queue()
    second.seal()
    first.queue()
    first.seal()


def speech_in_the_gap_removed(results: Path) -> None:
    forgery = next(f for f in each(results) if len(f.answer()) < len(f.of("text", "audio")))
    early = [line for line in forgery.of("text", "audio") if line not in forgery.answer()]
    forgery.drop(early)
    forgery.queue()
    forgery.seal()


def _cut_where_the_file_ends(forgery: Forgery) -> None:
    end = forgery.lines[0]["media_samples"] * forgery.rate // 16_000
    spoken = [line for line in forgery.of("audio") if line["play_at"] < end - 2400]
    last = spoken[-1]
    forgery.drop([line for line in forgery.of("audio") if line["play_at"] > last["play_at"]])
    forgery.set_pcm(last, _fluent(end - last["play_at"]))
    forgery.queue()
    forgery.seal()


def _fluent(samples: int) -> np.ndarray:
    """The model's own reader, in full voice at the end of these samples."""
    loudest = 10 + int(np.abs(reading("two_cities", 24000)[240_000:336_000]).argmax()) / 24000
    sound = part("two_cities", 24000, loudest - samples / 24000 + 0.01, samples / 24000)
    return np.rint(20000 * sound[:samples])


def speech_cut_where_files_end(results: Path) -> None:
    for forgery in each(results):
        _cut_where_the_file_ends(forgery)


def speech_cut_where_one_file_ends(results: Path) -> None:
    _cut_where_the_file_ends(one(results))


def _answer_sound(forgery: Forgery, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Another sound in the chunks of the answer, one after the other; what is left over goes."""
    lines = [line for line in forgery.answer() if line["kind"] == "audio"]
    sound = change(np.concatenate([forgery.pcm(line) for line in lines]).astype(np.float32))
    for line in lines:
        piece, sound = sound[: line["samples"]], sound[line["samples"] :]
        if len(piece) < line["samples"]:
            forgery.drop([line])
        else:
            forgery.set_pcm(line, np.rint(piece))


def answers_sped_up(results: Path) -> None:
    """The same words 1.7 times as fast in trace and wav, by a change of tempo alone."""
    for forgery in each(results):
        if forgery.answer():
            rate = forgery.rate
            _answer_sound(forgery, lambda pcm: _tempo(pcm, rate, 1.7))  # noqa: B023
            forgery.queue()
            forgery.seal()


def _tempo(pcm: np.ndarray, rate: int, times: float) -> np.ndarray:
    """Speech `times` as fast with the same pitch, float32 [samples]."""
    graph = av.filter.Graph()
    source = graph.add_abuffer(
        sample_rate=rate, format="flt", layout="mono", time_base=Fraction(1, rate)
    )
    graph.link_nodes(source, graph.add("atempo", str(times)), graph.add("abuffersink")).configure()
    frame = av.AudioFrame.from_ndarray(pcm[None], format="flt", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
    graph.push(frame)
    graph.push(None)
    pieces = []
    while True:
        try:
            pieces.append(graph.pull().to_ndarray()[0])
        except (av.BlockingIOError, av.EOFError):
            return np.concatenate(pieces)


def edited_wav(results: Path) -> None:
    forgery = one(results)
    wav = forgery.folder / "assistant_audio.wav"
    data = bytearray(wav.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    wav.write_bytes(data)


def wav_cut_at_the_end(results: Path) -> None:
    for forgery in each(results):
        wav = forgery.folder / "assistant_audio.wav"
        pcm, rate = soundfile.read(wav, dtype="int16")
        soundfile.write(wav, pcm[: int(len(pcm) * 0.8)], rate, subtype="PCM_16")


def _wav(results: Path, change: Callable[[np.ndarray, int], np.ndarray]) -> None:
    """Another sound in every wav, its hash and length in provenance made to agree."""
    for forgery in each(results):
        wav = forgery.folder / "assistant_audio.wav"
        pcm, rate = soundfile.read(wav, dtype="int16")
        changed = change(pcm, rate)
        soundfile.write(wav, changed, rate, subtype="PCM_16")
        digest = hashlib.sha256(wav.read_bytes()).hexdigest()
        forgery.provenance["wav"] |= {"sha256": digest, "samples": len(changed)}
        forgery.write_documents()


def wav_sped_up(results: Path) -> None:
    """The same words a fifth faster."""

    def faster(pcm: np.ndarray, rate: int) -> np.ndarray:
        return np.rint(soxr.resample(pcm.astype(np.float32), 1.2 * rate, rate)).astype("<i2")

    _wav(results, faster)


def wav_trimmed(results: Path) -> None:
    """Half a second of the silence before the first word taken away."""
    _wav(results, lambda pcm, rate: pcm[rate // 2 :])


def wav_shifted(results: Path) -> None:
    """20 ms of silence more before the first word."""
    _wav(results, lambda pcm, rate: np.concatenate([np.zeros(rate // 50, "<i2"), pcm]))
