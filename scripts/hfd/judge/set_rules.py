"""Audit rules that only a whole set of samples can answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from hfd.judge.metrics import GUARD_S, words
from hfd.judge.sample import Record
from hfd.judge.verdict import Verdict, failed, merged, passed, unknown

FEWEST = 5
"""A pattern is told from chance only over this many samples."""
FIXED_SD_S = 0.02
"""Slots of 80 ms alone make an honest model's delays vary by 23 ms."""
FIXED_EXACT_SD_S = 0.005


def offline_signature(records: Sequence[Record]) -> Verdict:
    """A7: outputs that all come after the file's end, at once, or on a grid of made-up times."""
    spoken = [record for record in records if _times(record)]
    if not spoken:
        return unknown("no sample has an output")
    grid = [record.sample_id for record in spoken if _on_grid(_times(record))]
    if grid:
        return failed(
            f"{len(grid)} of {len(spoken)} samples have output times on an exact millisecond grid: "
            "they were written, not measured",
            samples=grid,
        )
    late = [record for record in spoken if record.facts["after_end"]]
    if len(late) < 0.9 * len(spoken):
        share = f"{len(spoken) - len(late)} of {len(spoken)}"
        return passed(f"{share} samples answer while the file still plays")
    one = [record for record in late if len(record.facts["text_times"]) <= 1]
    ids = [record.sample_id for record in late]
    if len(one) >= 0.9 * len(late) and len(late) >= FEWEST:
        return failed(
            f"{len(late)} of {len(spoken)} samples answer only after the file's end, and their "
            "text comes in one piece: generated offline",
            samples=ids,
        )
    return unknown(
        f"{len(late)} of {len(spoken)} samples answer only after the file's end: "
        "a slow model and an offline one look alike here",
        samples=ids,
    )


def _times(record: Record) -> list[float]:
    return sorted(record.facts.get("text_times", []) + record.facts.get("audio_times", []))


def _on_grid(times: list[float]) -> bool:
    """Measured times do not all fall on whole milliseconds."""
    micros = np.rint(np.array(times) * 1e6)
    return len(times) >= 3 and bool((micros % 1000 == 0).all())


def fixed_delay(records: Sequence[Record]) -> Verdict:
    """A8: sound put at a fixed distance from the question's end or from the answer's text.

    Two kinds of onsets are looked at: where a chunk begins to play after a pause, and where sound
    becomes audible (some models also send their silence).
    """
    answers = []
    for kind in ("runs", "sounds"):
        placed = [record for record in records if record.facts.get(kind)]
        pairs = [pair for r in placed if (pair := _answer_delays(r, kind)) is not None]
        if len(pairs) < FEWEST:
            continue
        after_q1 = [delay for delay, _ in pairs]
        after_text = [delay for _, delay in pairs if delay is not None]
        for name, delays, limit in (
            ("the question's end", after_q1, FIXED_SD_S),
            ("the first text", after_text, FIXED_EXACT_SD_S),
        ):
            fixed = _fixed(delays, limit)
            if fixed:
                return failed(f"sound begins {fixed} after {name}", delays=delays[:50])
        lead = [record.facts[kind][0] for record in placed]
        whole = sum(abs(value * 10 - round(value * 10)) < 1e-6 for value in lead)
        if whole > 0.5 * len(lead):
            return failed(
                f"{whole} of {len(lead)} onsets are whole tenths of a second", onsets=lead[:50]
            )
        answers.append((1000 * float(np.std(after_q1)), len(pairs)))
    if not answers:
        return unknown(f"needs {FEWEST} answers with sound after the question")
    spread, n = answers[0]
    return passed(f"onsets vary by {spread:.0f} ms after the question, n={n}")


def _answer_delays(record: Record, kind: str) -> tuple[float, float | None] | None:
    """From the question's end, and from the answer's first text, to the answer's first sound."""
    q1 = record.facts["q1"]
    if q1 is None:
        return None
    sound = next((t for t in record.facts[kind] if t >= q1 - GUARD_S), None)
    text = next((t for t in record.facts["text_times"] if t >= q1 - GUARD_S), None)
    if sound is None:
        return None
    return sound - q1, None if text is None else sound - text


def _fixed(delays: list[float], limit: float) -> str | None:
    """How the delays are fixed, in words, or None; sound in step with its text is no delay."""
    if len(delays) < FEWEST or np.median(delays) < 0.05:
        return None
    values = np.array(delays)
    if values.std() < limit:
        return f"{values.mean():.3f} s (SD {1000 * values.std():.1f} ms, n={len(values)})"
    if limit < FIXED_SD_S:
        return None
    bins = Counter(np.floor(values * 100).astype(int).tolist())
    bin_, count = bins.most_common(1)[0]
    if count > 0.5 * len(values):
        return f"{bin_ / 100:.2f} s in {count} of {len(values)} samples"
    return None


def voices(records: Sequence[Record]) -> Verdict | None:
    """A11 over a set: text that always ends before sound begins, or a voice unlike the others."""
    sounding = [record for record in records if record.facts.get("audio_times")]
    found = [verdict for rule in (_text_first, _odd_voices) if (verdict := rule(sounding))]
    return merged(*found) if found else None


def _text_first(sounding: Sequence[Record]) -> Verdict | None:
    """Sound that begins only when the text is complete, in most samples with some text."""
    long = [
        record
        for record in sounding
        if len(record.facts["text_times"]) > 1
        and record.facts["text_times"][-1] - record.facts["text_times"][0] > 0.5
    ]
    waits = [
        record
        for record in long
        if record.facts["audio_times"][0] >= record.facts["text_times"][-1]
        and record.facts["voice_origin"] != "post_tts"
    ]
    if len(long) >= FEWEST and len(waits) >= 0.9 * len(long):
        return failed(
            f"in {len(waits)} of {len(long)} samples sound begins only when the text is complete: "
            "post_tts, whatever is declared",
            samples=[record.sample_id for record in waits],
        )
    return None


_PITCH_SEMITONES = 6.0
_SPECTRUM_DB = 10.0
_PITCHED_SPECTRUM_DB = 6.0
"""Another voice: a spectrum this far, or 6 dB with another pitch (pitch alone may be an
octave error). One expressive reader strays up to 6.6 dB from her own median (docs/audit.md)."""


def _odd_voices(records: Sequence[Record]) -> Verdict | None:
    """Samples whose pitch and spectrum lie far from the model's others in the same script."""
    groups: dict[bool, list[Record]] = defaultdict(list)
    for record in records:
        if record.facts.get("voice"):
            latin, han = words(record.facts["text"])
            groups[han > latin].append(record)
    odd = []
    for group in groups.values():
        if len(group) < FEWEST:
            continue
        prints = np.array([record.facts["voice"] for record in group])
        centre = np.median(prints, axis=0)
        pitch = np.abs(prints[:, 0] - centre[0])
        spectrum = np.sqrt(((prints[:, 1:] - centre[1:]) ** 2).mean(axis=1))
        pitched = (pitch > _PITCH_SEMITONES) & (spectrum > _PITCHED_SPECTRUM_DB)
        far = pitched | (spectrum > _SPECTRUM_DB)
        odd += [record.sample_id for record, is_far in zip(group, far, strict=True) if is_far]
    if odd:
        return failed(
            f"the voice of {len(odd)} samples is unlike the model's others, first {odd[0]}",
            samples=odd,
        )
    return None


def one_model(records: Sequence[Record]) -> Verdict | None:
    """A13 over a set: weights, settings and rate must be the same in every sample."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if "identity" in record.facts:
            kinds[repr(record.facts["identity"])].append(record.sample_id)
    if len(kinds) <= 1:
        return None
    fewest = min(kinds.values(), key=len)
    return failed(
        f"samples come from {len(kinds)} different models or settings, for example {fewest[0]}",
        samples=fewest,
    )


def completeness(records: Sequence[Record], extra: Sequence[str]) -> Verdict:
    """A14 over a set: every manifest id once, and no foreign folder."""
    count = Counter(record.status for record in records)
    gone = [r.sample_id for r in records if r.status in ("missing", "failed", "ineligible")]
    wrong = []
    if gone:
        named = ", ".join(
            f"{count[s]} {s}" for s in ("failed", "missing", "ineligible") if count[s]
        )
        wrong.append(failed(f"{named} of {len(records)}, first {gone[0]}", samples=gone))
    if extra:
        told = f"{len(extra)} folders are not in the manifest, first {extra[0]}"
        wrong.append(failed(told, samples=list(extra)))
    return merged(*wrong) if wrong else passed(f"{len(records)} samples, each once")


def duplicates(records: Sequence[Record]) -> dict[str, Verdict]:
    """A14, by model: wavs of different input that are the same bytes, or one sound for two texts.

    Honest are the same sound with the same text at another time (a deterministic voice that says
    it twice), and the same wav where one model heard the same file twice. Inputs count as
    different unless the files themselves were hashed: what a folder states proves nothing.
    """
    same: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.facts.get("sound_sha256"):
            same["wav", record.facts["wav_sha256"]].append(record)
            same["sound", record.facts["sound_sha256"]].append(record)
    found: dict[str, dict[str, list[Record]]] = defaultdict(dict)
    for (kind, _), group in same.items():
        texts = {record.facts["text"] for record in group}
        sources = {(r.model, r.facts["input_sha256"] or r.sample_id) for r in group}
        if len(sources) > 1 if kind == "wav" else len(texts) > 1:
            shown = " = ".join(f"{r.model}/{r.sample_id}".removeprefix("/") for r in group[:4])
            for record in group:
                found[record.model][shown] = group
    return {model: _repeated(model, groups) for model, groups in found.items()}


def _repeated(model: str, groups: dict[str, list[Record]]) -> Verdict:
    shown = sorted(groups)
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    guilty = [r.sample_id for group in groups.values() for r in group if r.model == model]
    blind = any(not r.facts["input_sha256"] for group in groups.values() for r in group)
    hint = ", and the compiled videos are not here to tell whether they are one" if blind else ""
    return failed(
        f"the same sound more than once: {shown[0]}{more}{hint}",
        groups=shown,
        samples=sorted(set(guilty)),
    )
