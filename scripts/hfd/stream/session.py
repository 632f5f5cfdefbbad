"""One sample through one model: feed the file unit by unit, record what comes out, write results.

The session owns media time, pacing and files; the model owns nothing but its answers.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from hfd.data.adapter import read_adapter
from hfd.data.manifest import Sample
from hfd.duplex.frames import with_frames_taken
from hfd.duplex.model import Capabilities, DuplexModel
from hfd.duplex.units import SampleInfo, Unit
from hfd.errors import HfdError
from hfd.files import json_text, sha256_bytes, sha256_file
from hfd.pcm import to_int16
from hfd.stream import trace
from hfd.stream.clock import Moment, RunClock, make_clock
from hfd.stream.machine import MachineWatch
from hfd.stream.reader import MediaInfo, probe, read_units
from hfd.stream.recorder import Recorder
from hfd.stream.result import Streamed, build_provenance, build_result
from hfd.stream.run import InputLog, Run

_READ_AHEAD_UNITS = 16


@dataclass(frozen=True)
class _Prepared:
    """A unit with its hashes, made before the unit is due."""

    unit: Unit
    pcm: bytes
    pcm_sha: str
    frame_digests: bytes
    frames_sha: str


def run_sample(
    model: DuplexModel,
    run: Run,
    sample: Sample,
    out_dir: Path,
    *,
    fingerprint: str,
    attempt: int = 1,
    between: Callable[[Unit], Unit] | None = None,
) -> dict[str, Any]:
    """Stream one compiled file through a loaded model and write its four result files.

    Args:
        model: loaded, with no sample open.
        run: what the worker's samples share.
        sample: the manifest row; its events are used for the result only, never shown to the model.
        out_dir: an existing empty folder; gets result.json, assistant_audio.wav, trace.jsonl.gz,
            provenance.json and, if the model left any, its side files in ``side/``.
        fingerprint: hash of what makes this result valid.
        attempt: how many times this sample has been tried, with this one.
        between: for probes: disturbs each unit before it is given over, outside of the model's
            steps.

    Returns:
        The content of result.json.

    Raises:
        HfdError: the file or the adapter is broken, the file does not fit the model, or the run
            was not online.
        Exception: whatever the model raised; `out_dir` then holds no result.
    """
    caps = model.capabilities
    info = probe(sample.video)
    if caps.max_media_s is not None and info.seconds > caps.max_media_s:
        raise HfdError(
            f"is {info.seconds:.1f} s long, {run.name} takes at most {caps.max_media_s:.1f} s",
            file=sample.video,
            remedy="Nothing is ever cropped: leave this sample out for this model",
        )
    qend = read_adapter(sample.adapter).qend if sample.adapter else None  # before any compute
    side = out_dir / "side"
    side.mkdir()
    shown = SampleInfo(
        sample.sample_id,
        info.seconds,
        info.width,
        info.height,
        run.sample_seed(sample.sample_id),
        side,
    )
    wall_anchor = datetime.now(UTC).isoformat(timespec="milliseconds")
    watch = MachineWatch()
    with trace.TraceWriter(out_dir / "trace.jsonl.gz") as lines:
        lines.write(
            "header",
            Moment(0.0, time.monotonic_ns()),
            schema=trace.SCHEMA,
            sample_id=sample.sample_id,
            model=run.name,
            clock=caps.clock,
            unit_samples=caps.unit_samples,
            output_rate=caps.output_rate,
            media_samples=info.samples,
            media_frames=info.frames,
            **run.shared(),
        )
        recorder = Recorder(lines, caps.output_rate)
        sent = InputLog()
        with nullcontext() if run.company is None else run.company.joined() as stay:
            try:
                model.open(shown, recorder.emit)
                ending = _drive(model, caps, sample, info, recorder, sent, run.max_lag_s, between)
            finally:
                recorder.stop()
                model.close()
    machine = watch.facts()
    with suppress(OSError):
        side.rmdir()  # stays if the model left files
    streamed = Streamed(run, caps, sample, qend, info, recorder, sent, ending)
    result = build_result(streamed)
    provenance = build_provenance(
        streamed,
        lines,
        wav_sha256=_write_wav(out_dir, recorder, info),
        fingerprint=fingerprint,
        attempt=attempt,
        wall_anchor=wall_anchor,
    )
    provenance["machine"] = machine
    if run.company is not None and stay is not None:
        provenance["shared"] = stay.record(run.company.sessions)
    # Plain writes: the folder becomes visible, flushed and whole, only when the worker moves it.
    (out_dir / "result.json").write_text(json_text(result), encoding="utf-8")
    provenance["result"] = {"sha256": sha256_file(out_dir / "result.json")}
    (out_dir / "provenance.json").write_text(json_text(provenance), encoding="utf-8")
    return result


def _drive(
    model: DuplexModel,
    caps: Capabilities,
    sample: Sample,
    info: MediaInfo,
    recorder: Recorder,
    sent: InputLog,
    max_lag_s: float,
    between: Callable[[Unit], Unit] | None,
) -> dict[str, Any]:
    """Push every unit at its time, then let the model finish; return what it said of the end."""
    units = read_units(sample.video, caps.unit_samples, info)
    taken = with_frames_taken(units, caps.frame_rule)
    prepared = _prepare(map(between, taken) if between else taken)
    if caps.clock == "arrival":
        prepared = _read_ahead(prepared)
    first = next(prepared)  # decoded before the clock starts
    clock = make_clock(caps.clock)
    recorder.start(clock)
    _push(model, first, clock, recorder, sent, max_lag_s)
    for item in prepared:
        _push(model, item, clock, recorder, sent, max_lag_s)
    began = clock.begin(info.seconds)
    recorder.line("input_done")
    ending = dict(model.finish())
    clock.end()
    if caps.clock == "virtual":
        sent.compute_s += clock.now() - began
    recorder.line("end", **ending)
    return ending


def _push(
    model: DuplexModel,
    item: _Prepared,
    clock: RunClock,
    recorder: Recorder,
    sent: InputLog,
    max_lag_s: float,
) -> None:
    unit = item.unit
    began = clock.begin(unit.t1)
    lag = began - unit.t1
    if clock.name == "arrival" and lag > max_lag_s:
        raise HfdError(
            f"not online: unit {unit.index} was sent {lag:.3f} s after its deadline"
            f" (limit {max_lag_s} s)",
            remedy="Give the worker more CPU or use a faster server, then run again",
        )
    recorder.input(
        unit.index,
        start=unit.start,
        samples=len(unit.pcm),
        valid_samples=unit.valid_samples,
        frames=[frame.index for frame in unit.frames],
        taken=[frame.index for frame in unit.taken],
        pcm_sha=item.pcm_sha,
        frames_sha=item.frames_sha,
        due=unit.t1,
    )
    model.push(unit)
    clock.end()
    if clock.name == "virtual":
        sent.compute_s += clock.now() - began
    sent.units += 1
    sent.samples += len(unit.pcm)
    sent.frames += len(unit.frames)
    sent.pad_samples = len(unit.pcm) - unit.valid_samples
    sent.lags_ms.append(lag * 1000)
    sent.pcm_hash.update(item.pcm)
    sent.frames_hash.update(item.frame_digests)


def _prepare(units: Iterator[Unit]) -> Iterator[_Prepared]:
    """Hash each unit: its valid int16 PCM, and the digests of its video frames."""
    for unit in units:
        pcm = to_int16(unit.pcm[: unit.valid_samples]).tobytes()
        digests = b"".join(frame.digest() for frame in unit.frames)
        yield _Prepared(unit, pcm, sha256_bytes(pcm), digests, sha256_bytes(digests))


def _read_ahead(items: Iterator[_Prepared]) -> Iterator[_Prepared]:
    """Decode in a thread, a few units ahead, so that no deadline waits for the decoder."""
    waiting: queue.Queue[Any] = queue.Queue(_READ_AHEAD_UNITS)
    leave = threading.Event()

    def put(item: Any) -> bool:
        while not leave.is_set():
            with suppress(queue.Full):
                waiting.put(item, timeout=0.2)
                return True
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(None)
        except BaseException as error:
            put(error)

    threading.Thread(target=read, name="reader", daemon=True).start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        leave.set()


def _write_wav(out_dir: Path, recorder: Recorder, info: MediaInfo) -> str:
    """Write the track, silent up to the media's end; return the file's SHA-256."""
    rate = recorder.playback.rate
    track: np.ndarray = recorder.playback.track(at_least=round(info.seconds * rate))
    path = out_dir / "assistant_audio.wav"
    soundfile.write(path, track, rate, subtype="PCM_16")
    return sha256_file(path)
