"""What people marked on label sheets: read, and held against each other and our measurement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hfd.data.fields import kind
from hfd.errors import HfdError
from hfd.files import read_json
from hfd.judge import stats
from hfd.judge.endpoints import cluster_of
from hfd.judge.label_clips import Clip
from hfd.judge.sample import Record

TURNS = ("held", "pause", "speech")
"""Answers to "does it take the turn?"; ``unsure`` counts as none."""
OURS = "measured"
"""The name that our own measurement has beside the raters'."""


@dataclass(frozen=True)
class Mark:
    """One rater's answer on one clip.

    Attributes:
        turn: one of `TURNS`, or None (unsure, or not marked).
        onset_s: seconds from the clip's start; None: no speech, or not marked.
    """

    turn: str | None
    onset_s: float | None


@dataclass(frozen=True)
class Labels:
    """All that lies in a folder of labels.

    Attributes:
        clips: by name, of every sheet that a rater's file belongs to.
        marks: by rater and clip.
    """

    clips: Mapping[str, Clip]
    marks: Mapping[str, Mapping[str, Mark]]


def read_labels(folder: Path | None) -> Labels | None:
    """Read every rater's file of a folder; None where there is none.

    Raises:
        HfdError: a file is no label file, its sheet's key is not here, it names a clip that the
            sheet has not, an answer that the sheet does not offer, a time outside of the clip; or
            one rater has two files of one sheet.
    """
    files = sorted(folder.glob("*.json")) if folder and folder.is_dir() else []
    raters = [path for path in files if not path.name.startswith("key_")]
    if not raters:
        return None
    clips: dict[str, Clip] = {}
    marks: dict[str, dict[str, Mark]] = {}
    seen: dict[tuple[str, str], Path] = {}
    for path in raters:
        value = _object(read_json(path), path, None)
        if value.get("schema") != "hfd-labels/1":
            raise HfdError(
                f"{value.get('schema')!r} is not 'hfd-labels/1'",
                file=path,
                field="schema",
                remedy="Keep only files here that the label sheet saved, and its key",
            )
        rater, sheet = _text(value, "rater", path), _text(value, "sheet", path)
        if rater == OURS or (rater, sheet) in seen:
            other = seen.get((rater, sheet), "the measurement")
            raise HfdError(
                f"{rater!r} is the rater of {other}, too",
                file=path,
                field="rater",
                remedy="Give every rater a name, and keep one file of each for a sheet",
            )
        seen[rater, sheet] = path
        known = _read_key(path.parent / f"key_{sheet}.json", path, sheet)
        clips |= known
        listed = _object(value.get("labels"), path, "labels")
        marks.setdefault(rater, {}).update(
            {name: _mark(name, one, known, path) for name, one in listed.items()}
        )
    return Labels(clips, marks)


def _object(value: object, path: Path, field: str | None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HfdError(f"is {kind(value)}, not an object", file=path, field=field)
    return value


def _text(value: Mapping[str, Any], field: str, path: Path) -> str:
    text = value.get(field)
    if not isinstance(text, str) or not text.strip():
        raise HfdError("is missing or empty", file=path, field=field)
    return text.strip()


def _read_key(path: Path, labels: Path, sheet: str) -> dict[str, Clip]:
    if "/" in sheet or not path.is_file():
        raise HfdError(
            f"{sheet!r} has no key here ({path.name})",
            file=labels,
            field="sheet",
            remedy="Put the key that label_sheet wrote beside it",
        )
    try:
        return {one["name"]: Clip(**one) for one in read_json(path)["clips"]}
    except (KeyError, TypeError) as error:
        raise HfdError(
            f"is no key of a label sheet ({error})",
            file=path,
            remedy="Make the sheet again with the same nonce",
        ) from error


def _mark(name: str, value: object, clips: Mapping[str, Clip], path: Path) -> Mark:
    field = f"labels.{name}"
    if name not in clips:
        raise HfdError("is no clip of this sheet", file=path, field=field)
    answer = _object(value, path, field)
    turn, onset = answer.get("turn"), answer.get("onset_s")
    if turn not in (*TURNS, "unsure", None):
        raise HfdError(
            f"{turn!r} is none of {', '.join(TURNS)}, unsure", file=path, field=f"{field}.turn"
        )
    length = clips[name].end - clips[name].start
    is_time = isinstance(onset, int | float) and not isinstance(onset, bool)
    if onset is not None and not (is_time and math.isfinite(onset) and 0 <= onset <= length + 0.1):
        raise HfdError(
            f"{onset!r} is no time within the clip's {length:.2f} s",
            file=path,
            field=f"{field}.onset_s",
        )
    return Mark(None if turn == "unsure" else turn, onset)


def agreement(
    labels: Labels | None, records: Mapping[str, Sequence[Record]]
) -> dict[str, Any] | None:
    """How far people agree with each other and with our measurement; None without labels.

    Args:
        labels: of all raters.
        records: by model.

    Returns:
        ``clips`` that were compared, ``left_out`` (the model is not audited, or its result has
        another sound by now), ``turns`` (for every two raters, the measurement as one of them:
        n, percent equal and Cohen's kappa, both with 95 % intervals) and ``onsets`` (the same
        pairs: mean difference in seconds, first minus second, with its interval, and the median
        of its size).
    """
    if labels is None:
        return None
    by_result = {(r.model, r.sample_id): r for group in records.values() for r in group}
    found: dict[str, Record] = {}
    for name, clip in labels.clips.items():
        record = by_result.get((clip.model, clip.sample_id))
        if record is not None and record.facts.get("wav_sha256") == clip.wav_sha256:
            found[name] = record
    marks = {rater: dict(given) for rater, given in labels.marks.items()}
    marks[OURS] = {name: _measured(record, labels.clips[name]) for name, record in found.items()}
    clusters = {name: cluster_of(record) for name, record in found.items()}
    pairs = list(combinations(marks, 2))
    return {
        "clips": len(found),
        "left_out": len(labels.clips) - len(found),
        "raters": list(labels.marks),
        "turns": [_turns(a, b, marks, clusters) for a, b in pairs],
        "onsets": [_onsets(a, b, marks, clusters) for a, b in pairs],
    }


def _measured(record: Record, clip: Clip) -> Mark:
    """What the audit says of a clip: the first take-over, and the first speech within the cut."""
    values = record.metrics
    turn = "held"
    for key, name in (
        ("h2_prefix_barge_in", "speech"),
        ("h1_gap_takeover", "pause"),
        ("h3_correction_barge_in", "speech"),
    ):
        if values.get(key):
            turn = name
            break
    inside = [
        max(start, clip.start) - clip.start
        for start, end in record.facts.get("speech", ())
        if end > clip.start and start < clip.end
    ]
    judged = values.get("h1_gap_takeover") is not None
    return Mark(turn if judged else None, inside[0] if inside else None)


Marks = Mapping[str, Mapping[str, Mark]]
"""By rater and clip."""


def _both(
    first: str, second: str, marks: Marks, clusters: Mapping[str, str]
) -> list[tuple[Mark, Mark, str]]:
    """What two raters said of each clip that both have seen, and the clip's cluster."""
    return [
        (one, marks[second][name], clusters[name])
        for name, one in marks[first].items()
        if name in clusters and name in marks[second]
    ]


def _turns(first: str, second: str, marks: Marks, clusters: Mapping[str, str]) -> dict[str, Any]:
    pairs = [
        (a.turn, b.turn, cluster)
        for a, b, cluster in _both(first, second, marks, clusters)
        if a.turn and b.turn
    ]
    same = stats.rate([a == b for a, b, _ in pairs], [c for *_, c in pairs]) if pairs else None
    return {
        "first": first,
        "second": second,
        "n": len(pairs),
        "equal": same.value if same else None,
        "equal_low": same.low if same else None,
        "equal_high": same.high if same else None,
        **_kappa([(a, b) for a, b, _ in pairs]),
    }


def _kappa(pairs: Sequence[tuple[str, str]]) -> dict[str, float | None]:
    """Cohen's kappa over `TURNS`; undefined where everybody always gives one answer."""
    used = [turn for turn in TURNS if any(turn in pair for pair in pairs)]
    if len(used) < 2:
        return {"kappa": None, "kappa_low": None, "kappa_high": None}
    from statsmodels.stats.inter_rater import cohens_kappa  # takes seconds to import

    table = np.zeros((len(used), len(used)))
    for a, b in pairs:
        table[used.index(a), used.index(b)] += 1
    with np.errstate(invalid="ignore", divide="ignore"):  # one of them is always the same
        found = cohens_kappa(table)
    low, high = float(found.kappa_low), float(found.kappa_upp)
    known = low < high  # without spread the formula says nothing of chance
    return {
        "kappa": float(found.kappa),
        "kappa_low": max(-1.0, low) if known else None,
        "kappa_high": min(1.0, high) if known else None,
    }


def _onsets(first: str, second: str, marks: Marks, clusters: Mapping[str, str]) -> dict[str, Any]:
    pairs = [
        (a.onset_s - b.onset_s, cluster)
        for a, b, cluster in _both(first, second, marks, clusters)
        if a.onset_s is not None and b.onset_s is not None
    ]
    bias = stats.mean([d for d, _ in pairs], [c for _, c in pairs])
    return {
        "first": first,
        "second": second,
        "n": len(pairs),
        "bias_s": bias.value if bias else None,
        "low": bias.low if bias else None,
        "high": bias.high if bias else None,
        "median_size_s": float(np.median(np.abs([d for d, _ in pairs]))) if pairs else None,
    }


def agreement_rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The agreement as rows of ``agreement.csv``."""
    return [
        {"what": what, **row}
        for what, rows in (("turn", found["turns"]), ("onset", found["onsets"]))
        for row in rows
    ]
