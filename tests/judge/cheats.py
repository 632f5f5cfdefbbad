"""Planted cheats: each takes honest results and cheats in one way, with every file in agreement.

`CHEATS` is the matrix of docs/audit.md: the rule that must catch the cheat, or what evidence
would settle it where a folder alone cannot.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.filter
import numpy as np
import soundfile
import soxr

from hfd.judge.identity_check import fingerprint, sample_seed
from tests.judge.forge import Forgery
from tests.judge.speech_clips import part, reading


@dataclass(frozen=True)
class Cheat:
    """A way to cheat.

    Attributes:
        name: what is done, in words.
        apply: changes a copy of a model's results folder.
        caught_by: the rule that must fail.
        also: rules that may fail with it, because the cheat breaks what they ask too.
        settled_by: where no rule can see it in a folder: the evidence that would settle it.
        named_by: a rule that names it all the same, for a person to look at.
    """

    name: str
    apply: Callable[[Path], None]
    caught_by: str | None
    also: tuple[str, ...] = ()
    settled_by: str = ""
    named_by: str = ""


def _each(results: Path) -> list[Forgery]:
    return [Forgery(folder) for folder in sorted(results.iterdir())]


def _one(results: Path, with_answer: bool = True) -> Forgery:
    return next(
        f
        for f in _each(results)
        if not with_answer or any(line["kind"] == "audio" for line in f.answer())
    )


def fixed_delay(results: Path) -> None:
    for forgery in _each(results):
        lines = forgery.answer()
        first = next(line["t"] for line in lines if line["kind"] == "audio")
        shift = forgery.result["qend"] + 0.9 - first
        for line in lines:
            line["t"] = round(line["t"] + shift, 6)
        for line in forgery.of("control"):
            if line["t"] >= lines[0]["t"] - shift:
                line["t"] = round(line["t"] + shift, 6)
        _after_open(forgery)


def fixed_delay_after_text(results: Path) -> None:
    for forgery in _each(results):
        text = next(line["t"] for line in forgery.answer() if line["kind"] == "text")
        audio = [line for line in forgery.answer() if line["kind"] == "audio"]
        shift = text + 0.32 - audio[0]["t"]
        for line in audio:
            line["t"] = round(line["t"] + shift, 6)
        _after_open(forgery)


def _after_open(forgery: Forgery) -> None:
    """Keep lines inside the run, in order, on the queue, and agree everywhere."""
    end = max(line["t"] for line in forgery.lines)
    forgery.of("end")[0]["t"] = round(end + 0.001, 6)
    forgery.sort()
    forgery.queue()
    forgery.seal()


def other_voice_in_other_chunks(results: Path) -> None:
    forgery = _one(results)
    for n, line in enumerate(forgery.of("audio")):
        forgery.set_pcm(line, _stranger(n, 7600))
    forgery.queue()
    forgery.seal()


def other_voice_in_whole_frames(results: Path) -> None:
    for forgery in _each(results)[1:4]:
        for n, line in enumerate(forgery.of("audio")):
            forgery.set_pcm(line, _stranger(n, line["samples"]))
        forgery.seal()


def _stranger(n: int, samples: int) -> np.ndarray:
    """Another reader, fifteen semitones higher."""
    sound = part("endgame_nagg_nell", 24000, 3.0 + 0.4 * n, samples * 2.4 / 24000 + 0.01)
    sound = soxr.resample(sound, 24000 * 2.4, 24000)[:samples]
    return np.rint(20000 * sound)


def post_tts(results: Path) -> None:
    for forgery in _each(results):
        lines = forgery.answer()
        texts = [line for line in lines if line["kind"] == "text"]
        for n, line in enumerate(line for line in lines if line["kind"] == "audio"):
            line["t"] = round(texts[-1]["t"] + 0.21 + 0.0137 * n + 0.01 * len(texts), 6)
        forgery.drop([line for line in forgery.of("text") if line not in texts])
        forgery.drop([line for line in forgery.of("audio") if line not in lines])
        _after_open(forgery)


def doubled_padding(results: Path) -> None:
    for forgery in _each(results):
        done = forgery.of("input_done")[0]
        at = forgery.lines.index(done)
        last = copy.deepcopy(forgery.of("input")[-1])
        unit = last["samples"]
        more = []
        for n in range(1, 48_000 // unit + 1):
            start = last["start"] + n * unit
            more.append(
                copy.deepcopy(last)
                | {
                    "unit": last["unit"] + n,
                    "start": start,
                    "valid_samples": unit,
                    "frames": [],
                    "due": (start + unit) / 16000,
                    "t": round(max(last["t"], (start + unit) / 16000), 6),
                }
            )
        forgery.lines[at:at] = more
        for line in forgery.lines[at + len(more) :]:
            line["t"] = round(max(line["t"], more[-1]["t"] + 0.000001), 6)
        forgery.queue()
        forgery.seal()


def offline_in_one_piece(results: Path) -> None:
    for forgery in _each(results):
        text = "".join(line["delta"] for line in forgery.of("text"))
        first = forgery.of("text")[0]
        sound = np.concatenate([forgery.pcm(line) for line in forgery.of("audio")])
        audio = forgery.of("audio")[0]
        kept = (id(first), id(audio))
        forgery.drop(
            [line for line in forgery.of("text", "audio", "control") if id(line) not in kept]
        )
        done = forgery.of("input_done")[0]["t"]
        first["delta"] = text
        first["t"] = round(done + 0.123457, 6)
        audio["t"] = round(done + 0.2 + 0.0123457 * len(text), 6)
        forgery.set_pcm(audio, sound[: len(sound) // 1920 * 1920])
        _after_open(forgery)


def offline_in_pieces(results: Path) -> None:
    for forgery in _each(results):
        done = forgery.of("input_done")[0]["t"]
        forgery.drop(forgery.of("control"))
        think = 0.1 + len(forgery.result["text"]) * 0.0123457
        for n, line in enumerate(forgery.of("text", "audio")):
            line["t"] = round(done + think * (1 + n) + 0.0113 * (n % 3), 6)
        _after_open(forgery)


def silence_for_a_failure(results: Path) -> None:
    """A sample that failed is delivered as silence; its error stays on record."""
    forgery = _one(results)
    forgery.drop(forgery.of("text", "audio", "control"))
    forgery.result |= {"status": "no_response"}
    forgery.queue()
    forgery.seal()
    errors = results.parent / "errors"
    errors.mkdir()
    record = {"error": "the server is gone", "attempt": 1}
    (errors / f"{forgery.folder.name}.json").write_text(json.dumps(record), encoding="utf-8")


def cropped_context(results: Path) -> None:
    forgery = _one(results)
    for n, line in enumerate(forgery.of("metric")):
        line["values"]["context_tokens"] = 3 * (n % 40)
    forgery.seal()


def audio_at_unit_start(results: Path) -> None:
    for forgery in _each(results):
        due = {line["unit"]: line["due"] for line in forgery.of("input")}
        for line in forgery.of("text", "audio"):
            line["t"] = round(due[line["input_seq"]] - 0.08 + line["t"] % 0.01, 6)
        forgery.lines = [forgery.lines[0], *sorted(forgery.lines[1:], key=lambda line: line["t"])]
        forgery.queue()
        forgery.seal()


def played_before_it_arrived(results: Path) -> None:
    for forgery in _each(results):
        for line in forgery.of("audio"):
            line["play_at"] = max(0, line["play_at"] - 12000)
        forgery.drop(forgery.of("control"))
        forgery.seal()


def edited_text_in_result(results: Path) -> None:
    forgery = _one(results)
    forgery.result["text"] = "There are three people in the picture."
    forgery.write_documents()


_OTHER = "there are three people in the picture and two dogs behind them"


def _edit_text(forgery: Forgery) -> None:
    other = _OTHER.split()
    for n, line in enumerate(forgery.of("text")):
        line["delta"] = other[n % len(other)] + " "
    forgery.seal()


def edited_text_everywhere(results: Path) -> None:
    for forgery in _each(results)[1:6]:
        _edit_text(forgery)


def edited_text_in_one_sample(results: Path) -> None:
    _edit_text(_one(results))


def edited_wav(results: Path) -> None:
    forgery = _one(results)
    wav = forgery.folder / "assistant_audio.wav"
    data = bytearray(wav.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    wav.write_bytes(data)


def speech_in_the_gap_removed(results: Path) -> None:
    forgery = next(f for f in _each(results) if len(f.answer()) < len(f.of("text", "audio")))
    early = [line for line in forgery.of("text", "audio") if line not in forgery.answer()]
    forgery.drop(early)
    forgery.queue()
    forgery.seal()


def another_sample_s_results(results: Path) -> None:
    first, second = sorted(results.iterdir())[:2]
    shutil.rmtree(second)
    shutil.copytree(first, second)


def another_sample_s_results_renamed(results: Path) -> None:
    first, second = sorted(results.iterdir())[1:3]
    deliver_as(first, second)


def deliver_as(first: Path, second: Path) -> None:
    """One sample's whole result in the place of another's."""
    shutil.rmtree(second)
    shutil.copytree(first, second)
    forgery = Forgery(second)
    forgery.lines[0]["sample_id"] = second.name
    forgery.provenance["model"]["seed"] = sample_seed(1, second.name)
    forgery.seal()


def duplicated_sound(results: Path) -> None:
    first, second = _each(results)[3:5]
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


def dropped_sample(results: Path) -> None:
    shutil.rmtree(sorted(results.iterdir())[2])


def text_only(results: Path) -> None:
    forgery = _one(results)
    forgery.drop(forgery.of("audio"))
    forgery.queue()
    forgery.seal()


def sent_early(results: Path) -> None:
    for forgery in _each(results):
        for line in forgery.lines[1:]:
            line["t"] = round(max(0.0, line["t"] - 0.2), 6)
        for line in forgery.of("text", "audio"):
            due = next(i["due"] for i in forgery.of("input") if i["unit"] == line["input_seq"])
            line["t"] = round(max(line["t"], due + 0.0001), 6)
        forgery.of("end")[0]["t"] = round(max(line["t"] for line in forgery.lines) + 0.001, 6)
        forgery.lines = [forgery.lines[0], *sorted(forgery.lines[1:], key=lambda line: line["t"])]
        forgery.queue()
        forgery.seal()


def skipped_pictures(results: Path) -> None:
    forgery = _one(results)
    nothing = hashlib.sha256(b"").hexdigest()
    for line in forgery.of("input")[::2]:
        line |= {"frames": [], "taken": [], "frames_sha": nothing}
    forgery.seal()


def skipped_unit(results: Path) -> None:
    forgery = _one(results)
    forgery.drop([forgery.of("input")[7]])
    forgery.seal()


def edited_trace(results: Path) -> None:
    forgery = _one(results)
    forgery.of("text")[0]["delta"] = "No "
    rows = [line["prev"] for line in forgery.lines]
    forgery.write_trace()
    assert rows != [line["prev"] for line in forgery.lines]


def compute_left_out(results: Path) -> None:
    """Two seconds of real compute that the run's clock does not count."""
    forgery = _one(results)
    at = forgery.lines.index(forgery.answer()[0])
    for line in forgery.lines[at:]:
        line["mono_ns"] += 2_000_000_000
    for seq, line in enumerate(forgery.lines):
        line["seq"] = seq
    forgery.write_odd_trace()
    forgery.write_documents()


def made_up_times(results: Path) -> None:
    for forgery in _each(results):
        for line in forgery.of("text", "audio"):
            line["t"] = round(line["t"] + 0.001, 3)
        _after_open(forgery)


def quantised(results: Path) -> None:
    for forgery in _each(results):
        forgery.provenance["model"]["quantisation"] = "int4"
        forgery.write_documents()


def quantised_by_type(results: Path) -> None:
    for forgery in _each(results):
        forgery.provenance["model"]["dtypes"] = {"torch.bfloat16": 3, "torch.int8": 290}
        forgery.write_documents()


def other_weights_for_one(results: Path) -> None:
    forgery = _one(results)
    forgery.provenance["model"]["weights"] = "b" * 64
    forgery.write_documents()


def other_acceleration_for_one(results: Path) -> None:
    forgery = _one(results)
    forgery.provenance["model"].setdefault("detail", {})["acceleration"] = "eager"
    forgery.write_documents()


def shared_times_for_one(results: Path) -> None:
    """One sample made beside three others, as every file of it says."""
    share_times(_one(results))


def shared_times_called_own(results: Path) -> None:
    """All samples made side by side, and but for the traces nothing says so."""
    for forgery in _each(results):
        forgery.lines[0]["sessions"] = 4
        forgery.seal_as_it_is()


def share_times(forgery: Forgery) -> None:
    """Make a result one of a worker that ran four samples side by side."""
    forgery.lines[0]["sessions"] = forgery.result["sessions"] = 4
    forgery.provenance["recipe"]["sessions"] = 4
    forgery.provenance["contract"]["max_sessions"] = 4
    forgery.provenance["shared"] = {"sessions": 4, "most_beside": 3, "mean_beside": 2.5}
    forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
    forgery.seal_as_it_is()


def other_seed_for_one(results: Path) -> None:
    """The best of two seeds: one sample made with another seed of the run, all hashes right."""
    forgery = _one(results)
    forgery.provenance["recipe"]["seed"] = 2
    forgery.provenance["model"]["seed"] = sample_seed(2, forgery.folder.name)
    forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
    forgery.write_documents()


def settings_hidden(results: Path) -> None:
    """Settings other than those that made it, in every file; the fingerprint is left."""
    for forgery in _each(results):
        forgery.provenance["model"]["settings"] = {"silence_s": 0.1}
        forgery.write_documents()


def another_model_renamed(results: Path) -> None:
    """Another model's run under this one's name, in trace and result."""
    for forgery in _each(results):
        forgery.provenance["model"]["module"] = "cascade"
        forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
        forgery.write_documents()


def under_another_name(results: Path) -> None:
    for forgery in _each(results):
        forgery.lines[0]["model"] = "other"
        forgery.seal()


def silent_sound(results: Path) -> None:
    for forgery in _each(results):
        for line in forgery.of("audio"):
            forgery.set_pcm(line, np.zeros(line["samples"]))
        forgery.seal()


def inaudible_sound(results: Path) -> None:
    noise = np.random.default_rng(1)
    for forgery in _each(results):
        for line in forgery.of("audio"):
            forgery.set_pcm(line, noise.integers(-20, 21, line["samples"]))
        forgery.seal()


def noise_for_speech(results: Path) -> None:
    """Loud enough to be heard, but no voice."""
    noise = np.random.default_rng(1)
    for forgery in _each(results):
        for line in forgery.of("audio"):
            forgery.set_pcm(line, noise.integers(-900, 901, line["samples"]))
        forgery.seal()


def compute_hidden(results: Path) -> None:
    """Of the compute in every step 99 % is hidden; the machine's clock is left as it was."""
    for forgery in _each(results):
        media_s = forgery.lines[0]["media_samples"] / 16_000
        v, step = 0.0, 0.0
        for line in forgery.lines[1:]:
            if line["kind"] in ("input", "input_done"):
                step, v = line["t"], max(v, line.get("due", media_s))
                line["t"] = round(v, 6)
            elif line["kind"] != "metric" or line["input_seq"] >= 0:
                v = max(v, v + 0.01 * (line["t"] - step))
                line["t"] = round(v, 6)
        forgery.queue()
        forgery.seal_as_it_is()


def own_time_claimed(results: Path) -> None:
    """The same, the hidden compute claimed as the recorder's own time."""
    for forgery in _each(results):
        own = 60_000_000 * len(forgery.answer())
        for line in forgery.lines[forgery.lines.index(forgery.answer()[1]) :]:
            line["own_ns"] += own
            line["mono_ns"] += own
        forgery.seal_as_it_is()


def declared_otherwise(results: Path) -> None:
    for forgery in _each(results):
        forgery.result["voice_origin"] = "post_tts"
        forgery.provenance["contract"]["voice_origin"] = "post_tts"
        forgery.write_documents()


def other_video(results: Path) -> None:
    forgery = _one(results)
    forgery.provenance["input"]["video_sha256"] = "c" * 64
    forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
    forgery.write_documents()


def other_sound_fed(results: Path) -> None:
    forgery = _one(results)
    for line in forgery.of("input")[20:]:
        line["pcm_sha"] = "d" * 64
    forgery.seal()


def other_pictures_fed(results: Path) -> None:
    """Black frames in the place of the file's: only their hashes tell."""
    for line in (forgery := _one(results)).of("input")[10:]:
        if line["frames"]:
            line["frames_sha"] = "e" * 64
    forgery.seal()


def fewer_pictures_taken(results: Path) -> None:
    """One frame a second where the contract's rule takes every frame."""
    for line in (forgery := _one(results)).of("input"):
        line["taken"] = [frame for frame in line["taken"] if frame % 5 == 0]
    forgery.seal()


def knows_the_correction(results: Path) -> None:
    """Words that the user first says in the correction, a second before it begins."""
    for forgery in (f for f in _each(results) if f.result["task"] == "hesitation"):
        unit = next(x for x in forgery.of("input") if x["t"] > forgery.result["qend"] - 3.2)
        line = copy.deepcopy(forgery.of("text")[0])
        line |= {"t": round(unit["t"] + 0.000731, 6), "delta": "many people there "}
        forgery.lines.append(line)
        _after_open(forgery)


def wav_cut_at_the_end(results: Path) -> None:
    for forgery in _each(results):
        wav = forgery.folder / "assistant_audio.wav"
        pcm, rate = soundfile.read(wav, dtype="int16")
        soundfile.write(wav, pcm[: int(len(pcm) * 0.8)], rate, subtype="PCM_16")


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
    for forgery in _each(results):
        _cut_where_the_file_ends(forgery)


def speech_cut_where_one_file_ends(results: Path) -> None:
    _cut_where_the_file_ends(_one(results))


def _wav(results: Path, change: Callable[[np.ndarray, int], np.ndarray]) -> None:
    """Another sound in every wav, its hash and length in provenance made to agree."""
    for forgery in _each(results):
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


def question_moved(results: Path) -> None:
    forgery = _one(results)
    forgery.result["qend"] = round(forgery.result["qend"] + 0.8, 3)
    forgery.write_documents()


def compute_understated(results: Path) -> None:
    for forgery in _each(results):
        forgery.result["rtf"]["compute_s"] = 0.001
        forgery.provenance["steps"]["compute_s"] = 0.001
        forgery.write_documents()


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
    for forgery in _each(results):
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


def answer_moved_forward(results: Path) -> None:
    """Four samples' sound 0.9 s earlier than it came, in trace and wav."""
    for forgery in [f for f in _each(results) if f.answer()][:4]:
        for line in forgery.answer():
            if line["kind"] == "text":
                line["t"] = round(line["t"] + 0.9, 6)
        _after_open(forgery)


SPOKEN_CHEATS = (
    Cheat("answers 1.7 times as fast in every file, chain made anew", answers_sped_up, "A15"),
    Cheat("sound of some samples before its text, chain made anew", answer_moved_forward, "A15"),
)
"""Cheats whose sound must be listened to: tests/judge/test_alignment.py does."""

CHEATS = (
    Cheat("sound placed 0.9 s after the question's end", fixed_delay, "A8"),
    Cheat("sound placed 0.32 s after the text", fixed_delay_after_text, "A8"),
    Cheat("speech re-synthesised, chunks of another codec", other_voice_in_other_chunks, "A11"),
    Cheat(
        "speech of some samples made anew, in whole frames",
        other_voice_in_whole_frames,
        "A11",
    ),
    Cheat("text first, speech afterwards", post_tts, "A11"),
    Cheat("another voice origin than the contract's", declared_otherwise, "A11"),
    Cheat("padding doubled at run time", doubled_padding, "A2"),
    Cheat("a unit left out", skipped_unit, "A2", ("A5",)),
    Cheat("pictures left out", skipped_pictures, "A2"),
    Cheat("generated offline, written as one answer after the end", offline_in_one_piece, "A7"),
    Cheat("times made up on a millisecond grid", made_up_times, "A7"),
    Cheat("context cropped", cropped_context, "A12"),
    Cheat("outputs put at their unit's start", audio_at_unit_start, "A5"),
    Cheat("sound played before it arrived", played_before_it_arrived, "A9"),
    Cheat("units sent before they exist", sent_early, "A3", ("A5",)),
    Cheat("text edited in result.json", edited_text_in_result, "A16"),
    Cheat("the question's end moved in result.json", question_moved, "A16"),
    Cheat("compute understated in result.json", compute_understated, "A16"),
    Cheat("text of half the samples edited in every file", edited_text_everywhere, "A15"),
    Cheat("wav edited", edited_wav, "A10", ("A16",)),
    Cheat("wav cut short", wav_cut_at_the_end, "A10", ("A16",)),
    Cheat("wav a fifth faster, its hash made to agree", wav_sped_up, "A10", ("A16",)),
    Cheat("wav trimmed at its start, its hash made to agree", wav_trimmed, "A10", ("A16",)),
    Cheat("wav moved by 20 ms, its hash made to agree", wav_shifted, "A10", ("A16",)),
    Cheat("speech cut off where the files end", speech_cut_where_files_end, "A14"),
    Cheat("trace edited", edited_trace, "A16", ("A4",)),
    Cheat("compute left out of the clock", compute_left_out, "A4"),
    Cheat("another sample's results", another_sample_s_results, "A16", ("A1", "A14", "A2")),
    Cheat(
        "another sample's results, renamed and sealed",
        another_sample_s_results_renamed,
        "A1",
        ("A14", "A16", "A2"),
    ),
    Cheat("one sample made with another seed", other_seed_for_one, "A13"),
    Cheat("other settings than the fingerprint's", settings_hidden, "A13"),
    Cheat("another model's results in this model's folder", under_another_name, "A13"),
    Cheat("another module's results under this model's name", another_model_renamed, "A13"),
    Cheat("sound of zeros", silent_sound, "A14"),
    Cheat("sound too soft to be heard", inaudible_sound, "A14"),
    Cheat("noise in the place of speech", noise_for_speech, "A15"),
    Cheat("99 % of the compute hidden", compute_hidden, "A4"),
    Cheat("compute claimed as the recorder's own", own_time_claimed, "A4"),
    Cheat("another video fed", other_video, "A1"),
    Cheat("words of the correction before it began", knows_the_correction, "A6"),
    Cheat("other pictures fed", other_pictures_fed, "A1"),
    Cheat("fewer pictures taken than the model's rule says", fewer_pictures_taken, "A1"),
    Cheat("other sound fed", other_sound_fed, "A1"),
    Cheat("a sample dropped", dropped_sample, "A14"),
    Cheat("one sound for two samples", duplicated_sound, "A14"),
    Cheat("text without sound", text_only, "A14"),
    Cheat("model quantised", quantised, "A13"),
    Cheat("weights of eight bits", quantised_by_type, "A13"),
    Cheat("other weights for one sample", other_weights_for_one, "A13"),
    Cheat("another acceleration for one sample", other_acceleration_for_one, "A13"),
    Cheat("one sample made beside others, on a shared card", shared_times_for_one, "A13"),
    Cheat("times of a shared card called the model's own", shared_times_called_own, "A13"),
    Cheat(
        "generated offline, written in pieces after the end",
        offline_in_pieces,
        None,
        settled_by="A6: `prefix_probe_<model>`, and answers that begin while the file plays",
    ),
    Cheat(
        "text of one sample edited in every file, chain made anew",
        edited_text_in_one_sample,
        None,
        settled_by="A15 names the sample (one in a set may be the recogniser's mistake): listen",
        named_by="A15",
    ),
    Cheat(
        "silence in the place of a failure",
        silence_for_a_failure,
        None,
        settled_by="A14 names the sample where its error is on record (`--work`); a witness",
        named_by="A14",
    ),
    Cheat(
        "speech cut off where one file ends",
        speech_cut_where_one_file_ends,
        None,
        settled_by="A14 names the sample and its last words: listen",
        named_by="A14",
    ),
    Cheat(
        "speech in the gap removed from every file, chain made anew",
        speech_in_the_gap_removed,
        None,
        settled_by="the worker's store (A16 with `--work`), or a witness's log",
    ),
)
