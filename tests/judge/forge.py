"""Forgeries made with care: every hash, count and copy is made to agree again afterwards."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from hfd.judge.clock_check import compute_s
from hfd.judge.documents import layout
from hfd.judge.result_check import told_by_trace
from hfd.judge.trace import Trace, read_trace
from hfd.judge.wav_check import rebuild


def write_rows(folder: Path, rows: list[str]) -> None:
    """Zip trace lines as the workflow does."""
    with (folder / "trace.jsonl.gz").open("wb") as raw:
        file = gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=1, mtime=0)
        with file as zipped:
            zipped.write(("\n".join(rows) + "\n").encode())


class Forgery:
    """One result folder, open for changes; `seal` makes all files agree with the trace again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[dict[str, Any]] = read_trace(folder / "trace.jsonl.gz").lines
        self.result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        self.provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))

    @property
    def rate(self) -> int:
        return self.lines[0]["output_rate"]

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] in kinds]

    def answer(self) -> list[dict[str, Any]]:
        """Text and audio lines at or after the end of the question."""
        return [line for line in self.of("text", "audio") if line["t"] >= self.result["qend"] - 0.3]

    def drop(self, lines: list[dict[str, Any]]) -> None:
        gone = {id(line) for line in lines}
        self.lines = [line for line in self.lines if id(line) not in gone]

    def set_pcm(self, line: dict[str, Any], pcm: np.ndarray) -> None:
        line["pcm"] = base64.b64encode(pcm.astype("<i2").tobytes()).decode()
        line["samples"] = len(pcm)

    def pcm(self, line: dict[str, Any]) -> np.ndarray:
        return np.frombuffer(base64.b64decode(line["pcm"]), "<i2")

    def sort(self) -> None:
        """Put lines in order of time again; outputs name the last unit sent before them."""
        head, rest = self.lines[0], self.lines[1:]
        self.lines = [head, *sorted(rest, key=lambda line: line["t"])]
        unit = -1
        for line in self.lines[1:]:
            unit = line["unit"] if line["kind"] == "input" else unit
            if "input_seq" in line:
                line["input_seq"] = unit

    def queue(self) -> None:
        """Place every chunk by the rule of the playback queue, cuts too."""
        end, chunks = 0, []
        for line in self.of("audio", "control"):
            at = round(line["t"] * self.rate)
            if line["kind"] == "audio":
                line["play_at"] = max(end, at)
                end = line["play_at"] + line["samples"]
                chunks.append([line["play_at"], end])
            elif "cut_at" in line:
                line["cut_at"] = end = min(end, at)
                line["cleared"] = sum(max(0, e - max(s, end)) for s, e in chunks)
                chunks = [[s, min(e, end)] for s, e in chunks if s < end]

    def write_trace(self) -> str:
        """Number, time and chain the lines anew; return the last line's hash."""
        prev, rows = "0" * 64, []
        self._set_clocks()
        for seq, line in enumerate(self.lines):
            line |= {"seq": seq, "prev": prev}
            row = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            prev = hashlib.sha256(row.encode()).hexdigest()
            rows.append(row)
        return self._write(rows, prev)

    def _set_clocks(self) -> None:
        """Both machine clocks of every line, as the run's clock would have given them."""
        arrival = self.lines[0]["clock"] == "arrival"
        media_s = self.lines[0]["media_samples"] / 16_000
        first = self.lines.index(self.of("input")[0])
        before = self.lines[first]
        zero = before["mono_ns"] - round(before["t"] * 1e9)
        for line in self.lines[first + 1 :]:
            own, since = 0, before["t"]
            if line["kind"] in ("input", "input_done"):
                own = 200_000
                since = max(since, line.get("due", media_s))
            counted = max(0, round((line["t"] - since) * 1e9))
            line["mono_ns"] = before["mono_ns"] + counted + own
            line["own_ns"] = before["own_ns"] + own
            if arrival:
                line |= {"mono_ns": zero + round(line["t"] * 1e9), "own_ns": 0}
            before = line

    def _write(self, rows: list[str], tail: str) -> str:
        write_rows(self.folder, rows)
        digest = hashlib.sha256((self.folder / "trace.jsonl.gz").read_bytes()).hexdigest()
        self.provenance["trace"] = {"lines": len(rows), "tail": tail, "sha256": digest}
        return tail

    def write_odd_trace(self) -> str:
        """Chain the lines as they are, whatever they hold; return the last line's hash."""
        prev, rows = "0" * 64, []
        for line in self.lines:
            line["prev"] = prev
            row = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            prev = hashlib.sha256(row.encode()).hexdigest()
            rows.append(row)
        return self._write(rows, prev)

    def seal(self) -> None:
        """Write trace, wav, result.json and provenance.json so that they agree."""
        self._agree(self.write_trace())

    def seal_as_it_is(self) -> None:
        """`seal`, with both clocks of every line left as they are."""
        for seq, line in enumerate(self.lines):
            line["seq"] = seq
        self._agree(self.write_odd_trace())

    def _agree(self, tail: str) -> None:
        trace = Trace(lines=self.lines, tail=tail)
        track, chunks, _ = rebuild(trace)
        wav = self.folder / "assistant_audio.wav"
        soundfile.write(wav, track, self.rate, subtype="PCM_16")
        self.result |= told_by_trace(trace, track, chunks)
        if self.result["rtf"]["compute_s"] is not None:
            self.result["rtf"]["compute_s"] = compute_s(trace)
        inputs, audio = self.of("input"), self.of("audio")
        cleared = [line["cleared"] for line in self.of("control") if "cleared" in line]
        self.provenance["sample_id"] = self.lines[0]["sample_id"]
        self.provenance["wav"] |= {
            "sha256": hashlib.sha256(wav.read_bytes()).hexdigest(),
            "samples": len(track),
        }
        self.provenance["input_stream"] |= {
            "units": len(inputs),
            "samples_sent": sum(line["samples"] for line in inputs),
            "frames_sent": sum(len(line["frames"]) for line in inputs),
            "pad_samples_last_unit": inputs[-1]["samples"] - inputs[-1]["valid_samples"],
        }
        self.provenance["output_stream"] |= {
            "text_deltas": len(self.of("text")),
            "audio_chunks": len(audio),
            "samples": sum(line["samples"] for line in audio),
            "cleared_samples": sum(cleared),
        }
        self.write_documents()

    def write_documents(self) -> None:
        text = layout(self.result)
        (self.folder / "result.json").write_text(text, encoding="utf-8")
        self.provenance["result"] = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
        (self.folder / "provenance.json").write_text(layout(self.provenance), encoding="utf-8")
