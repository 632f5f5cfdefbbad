"""result.json and provenance.json of one finished sample (fields: docs/formats.md)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfd.data.manifest import Sample
from hfd.duplex.model import Capabilities
from hfd.files import sha256_file
from hfd.secrets import without_secrets
from hfd.stream.provenance import code_version, environment
from hfd.stream.reader import MediaInfo
from hfd.stream.recorder import Recorder
from hfd.stream.run import InputLog, Run
from hfd.stream.trace import TraceWriter

RESULT_SCHEMA = "hfd-result/1"
PROVENANCE_SCHEMA = "hfd-provenance/1"
AUDIBLE = 33
"""Smallest int16 magnitude that counts as sound (-60 dBFS)."""


@dataclass(frozen=True)
class Streamed:
    """A sample whose stream is over: what its two records are made of.

    Attributes:
        run: what the worker's samples share.
        caps: the model's capabilities.
        sample: its manifest row.
        qend: end of the user's last words in media seconds, None where no adapter tells it.
        info: the file's length and size.
        recorder: everything the model said.
        sent: everything it was sent.
        ending: what the model said of the end.
    """

    run: Run
    caps: Capabilities
    sample: Sample
    qend: float | None
    info: MediaInfo
    recorder: Recorder
    sent: InputLog
    ending: Mapping[str, Any]


def build_result(streamed: Streamed) -> dict[str, Any]:
    """The content of result.json; silence is a valid result (``no_response``)."""
    caps, sample, info = streamed.caps, streamed.sample, streamed.info
    ending, sent = streamed.ending, streamed.sent
    out, playback = streamed.recorder.outputs, streamed.recorder.playback
    rate = playback.rate
    audible = np.flatnonzero(np.abs(playback.track().astype(np.int32)) >= AUDIBLE)
    first_audio = int(audible[0]) / rate if len(audible) else None
    text = "".join(piece["delta"] for piece in out.texts)
    segments = [{"start": start / rate, "end": end / rate} for start, end in playback.segments()]
    ends = [out.texts[-1]["t"]] if out.texts else []
    ends += [segments[-1]["end"]] if segments else []
    spoken_s = playback.samples / rate
    compute_s = sent.compute_s if caps.clock == "virtual" else None
    return {
        "schema": RESULT_SCHEMA,
        "sample_id": sample.sample_id,
        "model": streamed.run.name,
        "task": sample.task,
        "status": "ok" if text.strip() or first_audio is not None else "no_response",
        "text": text,
        "audio": "assistant_audio.wav",
        "first_token_s": out.texts[0]["t"] if out.texts else None,
        "first_audio_s": first_audio,
        "end_s": max(ends) if ends else None,
        "qend": streamed.qend,
        "text_events": out.texts,
        "audio_arrivals": out.audio,
        "segments": segments,
        "controls": out.controls,
        **({"heard": out.heard} if out.heard else {}),
        "clock": caps.clock,
        **streamed.run.shared(),
        "voice_origin": caps.voice_origin,
        "end_reason": ending.get("end_reason", "media_end"),
        "truncated": bool(ending.get("truncated", False)),
        "media_s": info.seconds,
        "sample_rate": rate,
        "rtf": {
            "compute_s": compute_s,
            "media_s": info.seconds,
            "compute_per_media_s": None if compute_s is None else compute_s / info.seconds,
            "spoken_s": spoken_s,
        },
    }


def build_provenance(
    streamed: Streamed,
    lines: TraceWriter,
    *,
    wav_sha256: str,
    fingerprint: str,
    attempt: int,
    wall_anchor: str,
) -> dict[str, Any]:
    """The content of provenance.json; no path, user name or secret enters it.

    Args:
        streamed: the sample.
        lines: its closed trace.
        wav_sha256: hash of its wav.
        fingerprint: hash of what makes the result valid.
        attempt: how many times the sample has been tried.
        wall_anchor: date and time at which it began.
    """
    run, caps, sample = streamed.run, streamed.caps, streamed.sample
    info, sent = streamed.info, streamed.sent
    out, playback = streamed.recorder.outputs, streamed.recorder.playback
    return {
        "schema": PROVENANCE_SCHEMA,
        "sample_id": sample.sample_id,
        "attempt": attempt,
        "fingerprint": fingerprint,
        "recipe": {"seed": run.seed, **run.recipe},
        "input": {
            "video_sha256": sha256_file(sample.video),
            "adapter_sha256": sha256_file(sample.adapter) if sample.adapter else None,
            "pcm_sha256": sent.pcm_hash.hexdigest(),
            "frames_sha256": sent.frames_hash.hexdigest(),
            "media_s": info.seconds,
            "samples": info.samples,
            "frames": info.frames,
        },
        "model": {
            **run.identity.record(),
            "module": run.module,
            "settings": without_secrets(run.settings),
            "resolved": without_secrets(run.resolved),
            "seed": run.sample_seed(sample.sample_id),
        },
        "contract": caps.record() | {"max_sessions": run.sessions},
        "clock": {
            "name": caps.clock,
            "id": f"monotonic:{time.get_clock_info('monotonic').implementation}",
            "wall_anchor": wall_anchor,
        },
        "input_stream": {
            "units": sent.units,
            "samples_sent": sent.samples,
            "frames_sent": sent.frames,
            "pad_samples_last_unit": sent.pad_samples,
            "lag_ms": _percentiles(sent.lags_ms),
        },
        "output_stream": {
            "text_deltas": len(out.texts),
            "audio_chunks": len(out.audio),
            "samples": sum(chunk["samples"] for chunk in out.audio),
            "cleared_samples": playback.cleared,
            "clipped_samples": out.clipped,
            "underrun_s": out.underrun_samples / playback.rate,
        },
        "steps": {"n": out.metrics, "compute_s": sent.compute_s},
        "ending": dict(streamed.ending),
        "wav": {
            "sha256": wav_sha256,
            "sample_rate": playback.rate,
            "samples": max(playback.end, round(info.seconds * playback.rate)),
            "placement": "arrival_queue",
        },
        "trace": {"lines": lines.lines, "tail": lines.tail, "sha256": lines.sha256()},
        "code": code_version(run.source),
        "env": environment(),
    }


def _percentiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {"p50": 0.0, "p95": 0.0, "max": 0.0}
    p50, p95 = np.percentile(values, [50, 95])
    return {"p50": round(p50, 3), "p95": round(p95, 3), "max": round(max(values), 3)}
