"""Cheats with time: when something was sent, said, heard or computed."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np

from tests.judge.cheats.common import after_open, each, one


def fixed_delay(results: Path) -> None:
    for forgery in each(results):
        lines = forgery.answer()
        first = next(line["t"] for line in lines if line["kind"] == "audio")
        shift = forgery.result["qend"] + 0.9 - first
        for line in lines:
            line["t"] = round(line["t"] + shift, 6)
        for line in forgery.of("control"):
            if line["t"] >= lines[0]["t"] - shift:
                line["t"] = round(line["t"] + shift, 6)
        after_open(forgery)


def fixed_delay_after_text(results: Path) -> None:
    for forgery in each(results):
        text = next(line["t"] for line in forgery.answer() if line["kind"] == "text")
        audio = [line for line in forgery.answer() if line["kind"] == "audio"]
        shift = text + 0.32 - audio[0]["t"]
        for line in audio:
            line["t"] = round(line["t"] + shift, 6)
        after_open(forgery)


def post_tts(results: Path) -> None:
    for forgery in each(results):
        lines = forgery.answer()
        texts = [line for line in lines if line["kind"] == "text"]
        for n, line in enumerate(line for line in lines if line["kind"] == "audio"):
            line["t"] = round(texts[-1]["t"] + 0.21 + 0.0137 * n + 0.01 * len(texts), 6)
        forgery.drop([line for line in forgery.of("text") if line not in texts])
        forgery.drop([line for line in forgery.of("audio") if line not in lines])
        after_open(forgery)


def offline_in_one_piece(results: Path) -> None:
    for forgery in each(results):
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
        after_open(forgery)


def offline_in_pieces(results: Path) -> None:
    for forgery in each(results):
        done = forgery.of("input_done")[0]["t"]
        forgery.drop(forgery.of("control"))
        think = 0.1 + len(forgery.result["text"]) * 0.0123457
        for n, line in enumerate(forgery.of("text", "audio")):
            line["t"] = round(done + think * (1 + n) + 0.0113 * (n % 3), 6)
        after_open(forgery)


def audio_at_unit_start(results: Path) -> None:
    for forgery in each(results):
        due = {line["unit"]: line["due"] for line in forgery.of("input")}
        for line in forgery.of("text", "audio"):
            line["t"] = round(due[line["input_seq"]] - 0.08 + line["t"] % 0.01, 6)
        forgery.lines = [forgery.lines[0], *sorted(forgery.lines[1:], key=lambda line: line["t"])]
        forgery.queue()
        forgery.seal()


def played_before_it_arrived(results: Path) -> None:
    for forgery in each(results):
        for line in forgery.of("audio"):
            line["play_at"] = max(0, line["play_at"] - 12000)
        forgery.drop(forgery.of("control"))
        forgery.seal()


def sent_early(results: Path) -> None:
    for forgery in each(results):
        for line in forgery.lines[1:]:
            line["t"] = round(max(0.0, line["t"] - 0.2), 6)
        for line in forgery.of("text", "audio"):
            due = next(i["due"] for i in forgery.of("input") if i["unit"] == line["input_seq"])
            line["t"] = round(max(line["t"], due + 0.0001), 6)
        forgery.of("end")[0]["t"] = round(max(line["t"] for line in forgery.lines) + 0.001, 6)
        forgery.lines = [forgery.lines[0], *sorted(forgery.lines[1:], key=lambda line: line["t"])]
        forgery.queue()
        forgery.seal()


def made_up_times(results: Path) -> None:
    for forgery in each(results):
        for line in forgery.of("text", "audio"):
            line["t"] = round(line["t"] + 0.001, 3)
        after_open(forgery)


def answer_moved_forward(results: Path) -> None:
    """Four samples' sound 0.9 s earlier than it came, in trace and wav."""
    for forgery in [f for f in each(results) if f.answer()][:4]:
        for line in forgery.answer():
            if line["kind"] == "text":
                line["t"] = round(line["t"] + 0.9, 6)
        after_open(forgery)


def knows_the_correction(results: Path) -> None:
    """Words that the user first says in the correction, a second before it begins."""
    for forgery in (f for f in each(results) if f.result["task"] == "hesitation"):
        unit = next(x for x in forgery.of("input") if x["t"] > forgery.result["qend"] - 3.2)
        line = copy.deepcopy(forgery.of("text")[0])
        line |= {"t": round(unit["t"] + 0.000731, 6), "delta": "many people there "}
        forgery.lines.append(line)
        after_open(forgery)


def compute_left_out(results: Path) -> None:
    """Two seconds of real compute that the run's clock does not count."""
    forgery = one(results)
    at = forgery.lines.index(forgery.answer()[0])
    for line in forgery.lines[at:]:
        line["mono_ns"] += 2_000_000_000
    for seq, line in enumerate(forgery.lines):
        line["seq"] = seq
    forgery.write_odd_trace()
    forgery.write_documents()


def compute_hidden(results: Path) -> None:
    """Of the compute in every step 99 % is hidden; the machine's clock is left as it was."""
    for forgery in each(results):
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
    for forgery in each(results):
        own = 60_000_000 * len(forgery.answer())
        for line in forgery.lines[forgery.lines.index(forgery.answer()[1]) :]:
            line["own_ns"] += own
            line["mono_ns"] += own
        forgery.seal_as_it_is()


def compute_understated(results: Path) -> None:
    for forgery in each(results):
        forgery.result["rtf"]["compute_s"] = 0.001
        forgery.provenance["steps"]["compute_s"] = 0.001
        forgery.write_documents()


def question_moved(results: Path) -> None:
    forgery = one(results)
    forgery.result["qend"] = round(forgery.result["qend"] + 0.8, 3)
    forgery.write_documents()
