"""Read the layouts of Full-Duplex-Bench, HumDial-FDBench and Easy-Turn (docs/outside_sets.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from hfd.data.fields import kind
from hfd.data.jsonl import read_rows
from hfd.data.outside import OutsideRow
from hfd.errors import HfdError
from hfd.files import read_json

WAIT_S = 3.0
"""For so long a model should hold after an incomplete clip; every compiled file has as much."""
_VOICED = 150 / 32768
"""Root mean square of a voiced 30 ms frame."""
_TAG = re.compile(r"<[^>]*>")

FDB_SUBSETS = {
    "candor_pause_handling": ("pause", "CC BY-NC 4.0 and CANDOR's terms"),
    "synthetic_pause_handling": ("pause", "MIT"),
    "synthetic_user_interruption": ("interruption", "MIT"),
}
HUMDIAL_FOLDERS = {"en": "en_test_nondev", "zh": "cn_test_nondev"}


def full_duplex_bench(root: Path) -> list[OutsideRow]:
    """Version 1.0's pause and interruption subsets: ``<subset>/<id>/input.wav`` and annotations.

    Raises:
        HfdError: none of the subsets is there, or a sample's files are not as they must be.
    """
    rows = []
    for name, (task, licence) in FDB_SUBSETS.items():
        for folder in _folders(root, name):
            audio = _file(folder / "input.wav")
            read = _fdb_pause if task == "pause" else _fdb_interruption
            events, scores, annotation = read(folder, audio)
            rows.append(
                OutsideRow(
                    sample_id=f"fdb-{name}-{folder.name}",
                    task=f"fdb_{name}",
                    audio=audio,
                    language="en",
                    events=events,
                    scores=scores,
                    licence=licence,
                    annotation=annotation,
                )
            )
    return _some(rows, root, f"a folder {' or '.join(FDB_SUBSETS)} of Full-Duplex-Bench v1.0")


Found = tuple[list[dict[str, Any]], dict[str, tuple[float, float]], Any]


def _fdb_pause(folder: Path, audio: Path) -> Found:
    path = _file(folder / "pause.json")
    pauses = [_span(one.get("timestamp"), path) for one in _objects(read_json(path), path)]
    length = _seconds(audio)
    words = _words(folder / "transcription.json")
    events: list[dict[str, Any]] = []
    if pauses:
        start, end = max(pauses, key=lambda pause: pause[1] - pause[0])
        events = _around(audio, (0.0, start), (end, length), words)
    return events, {"fdb_pause_tor": (0.0, length)}, {"pause.json": pauses}


def _fdb_interruption(folder: Path, audio: Path) -> Found:
    path = _file(folder / "interrupt.json")
    first = next(iter(_objects(read_json(path), path)), None)
    if first is None:
        raise HfdError("is empty", file=path)
    start, end = _span(first.get("timestamp"), path)
    length = _seconds(audio)
    said = _voiced(audio, 0.0, start) or (0.0, start)
    events = [
        {"role": "context", "start": said[0], "end": said[1], "text": first.get("context", "")},
        {"role": "interruption", "start": start, "end": end, "text": first.get("interrupt", "")},
    ]
    return events, {"fdb_interruption_tor": (end, length)}, {"interrupt.json": first}


def humdial(root: Path) -> list[OutsideRow]:
    """The test set's pauses: ``test/<en|cn>_test_nondev/pause/<speaker>_<item>.{wav,json}``.

    The gap is the longest one between the words of ``<id>_timestamp.json`` in the segment that has
    ``[break]`` in its text; a sample without one is imported, but not scored.

    Raises:
        HfdError: there is no such folder, or a sample's files are not as they must be.
    """
    rows = []
    for language, name in HUMDIAL_FOLDERS.items():
        for base in (root, root / "test"):
            for path in sorted((base / name / "pause").glob("*.json")):
                if not (path.stem.endswith("_timestamp") or path.stem.startswith("clean_")):
                    rows.append(_humdial_row(path, language))
    return _some(rows, root, "test/en_test_nondev/pause or test/cn_test_nondev/pause")


def _humdial_row(path: Path, language: str) -> OutsideRow:
    audio = _file(path.with_suffix(".wav"))
    value = read_json(path)
    segments = _objects(value.get("speech_segments") if isinstance(value, dict) else None, path)
    words = _words(_file(path.with_name(f"{path.stem}_timestamp.json")))
    parts = [found for one in segments if (found := _broken(one, words, path)) is not None]
    if parts:
        events, window = max(parts, key=lambda part: part[0][1]["start"] - part[0][0]["end"])
        scores, note = {"wait_held": window}, ""
    else:
        events = [_segment(one, path) for one in segments]
        scores, note = {}, "no [break] with a gap between its words: not scored"
    return OutsideRow(
        sample_id=f"humdial-{language}-pause-{path.stem}",
        task="humdial_pause",
        audio=audio,
        language=language,
        events=events,
        scores=scores,
        licence="Apache-2.0",
        annotation=value,
        note=note,
        speaker=f"humdial-{language}-{path.stem.split('_')[0]}",
    )


def _segment(one: Mapping[str, Any], path: Path) -> dict[str, Any]:
    start, end = _span([one.get("xmin"), one.get("xmax")], path)
    return {"role": "question", "start": start, "end": end, "text": str(one.get("text", ""))}


def _broken(
    one: Mapping[str, Any], words: Sequence[tuple[str, float, float]], path: Path
) -> tuple[list[dict[str, Any]], tuple[float, float]] | None:
    """A segment with ``[break]`` as two questions, and the seconds in which to wait; else None."""
    whole = _segment(one, path)
    start, end = whole["start"], whole["end"]
    inside = [(a, b) for _, a, b in words if start - 0.05 <= a <= end + 0.05]
    if "[break]" not in whole["text"] or len(inside) < 2:
        return None
    before, after = max(pairwise(inside), key=lambda pair: pair[1][0] - pair[0][1])
    if not start < before[1] < after[0] < end:
        return None
    first, second = whole["text"].split("[break]", 1)
    return [
        {"role": "first_question", "start": start, "end": before[1], "spoken_text": first.strip()},
        {"role": "second_question", "start": after[0], "end": end, "text": second.strip()},
    ], (start, after[0])


def easy_turn(root: Path) -> list[OutsideRow]:
    """The incomplete clips of the test set: ``testset/incomplete/*.list`` and its wav files.

    Their annotation is a label without times: the event has none, and nothing is an answer to it.

    Raises:
        HfdError: there is no list, or a clip is not there or silent.
    """
    rows = []
    for base in (root, root / "testset"):
        for path in sorted((base / "incomplete").glob("*.list")):
            rows += [_easy_turn_row(base, path, line, row) for line, row in read_rows(path)]
    return _some(rows, root, "testset/incomplete/*.list")


def _easy_turn_row(base: Path, path: Path, line: int, row: Mapping[str, Any]) -> OutsideRow:
    place = f"{path}:{line}"
    key, wav, text = (row.get(name) for name in ("key", "wav", "txt"))
    if not (isinstance(key, str) and isinstance(wav, str) and isinstance(text, str)):
        raise HfdError("needs key, wav and txt", file=place)
    audio = _file((base / wav).resolve(), place)
    said = _voiced(audio, 0.0, _seconds(audio))
    if said is None:
        raise HfdError("is silent", file=audio)
    speaker = row.get("speaker")
    return OutsideRow(
        sample_id=f"easyturn-incomplete-{key}",
        task="easyturn_incomplete",
        audio=audio,
        language="zh",
        events=[{"role": "incomplete", "text": _TAG.sub("", text).strip()}],
        scores={"wait_held": (said[0], said[1] + WAIT_S)},
        licence="Apache-2.0",
        annotation=dict(row),
        speaker=f"easyturn-{speaker}" if speaker and speaker != "<NONE>" else None,
    )


SETS: Mapping[str, Callable[[Path], list[OutsideRow]]] = {
    "full-duplex-bench": full_duplex_bench,
    "humdial": humdial,
    "easy-turn": easy_turn,
}


def _folders(root: Path, name: str) -> Iterator[Path]:
    """Sample folders of a subset, by number; beside `root` itself, in ``v1_0`` or ``v1.0``."""
    for base in (root, root / "v1_0", root / "v1.0"):
        found = [path for path in (base / name).glob("*") if path.is_dir()]
        yield from sorted(found, key=lambda path: (len(path.name), path.name))


def _some(rows: list[OutsideRow], root: Path, wanted: str) -> list[OutsideRow]:
    if not rows:
        raise HfdError("holds no samples", file=root, remedy=f"It should have {wanted}")
    return rows


def _file(path: Path, place: str | None = None) -> Path:
    if not path.is_file():
        raise HfdError(f"{path} is missing", file=place or path.parent)
    return path


def _objects(value: object, path: Path) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise HfdError(f"is {kind(value)}, not a list of objects", file=path)
    return value


def _span(value: object, path: Path) -> tuple[float, float]:
    numbers = isinstance(value, Sequence) and len(value) == 2
    if not (numbers and all(isinstance(t, int | float) for t in value)):  # type: ignore[attr-defined]
        raise HfdError(f"{value!r} is no pair of seconds", file=path)
    start, end = (float(t) for t in value)  # type: ignore[attr-defined]
    if not 0 <= start < end:
        raise HfdError(f"{start:g} to {end:g} s is empty or inverted", file=path)
    return start, end


def _words(path: Path) -> list[tuple[str, float, float]]:
    """Words with their seconds: a list, a list by speaker (``item``), or under ``chunks``."""
    if not path.is_file():
        return []
    value = read_json(path)
    listed = value.get("chunks") if isinstance(value, dict) else value
    flat: list[dict[str, Any]] = []
    for one in _objects(listed, path):
        flat += _objects(one["item"], path) if "item" in one else [one]
    found = []
    for one in flat:
        times = one.get("timestamp")
        if isinstance(times, list) and len(times) == 2 and None not in times:
            found.append((str(one.get("text", "")), float(times[0]), float(times[1])))
    return sorted(found, key=lambda word: word[1])


def _around(
    audio: Path,
    before: tuple[float, float],
    after: tuple[float, float],
    words: Sequence[tuple[str, float, float]],
) -> list[dict[str, Any]]:
    """The speech before a pause and after it as two questions; [] if one of them is silent."""
    first, second = _voiced(audio, *before), _voiced(audio, *after)
    if first is None or second is None:
        return []

    def text(start: float, end: float) -> str:
        return " ".join(word.strip() for word, at, _ in words if start <= at < end)

    return [
        {
            "role": "first_question",
            "start": first[0],
            "end": before[1],
            "spoken_text": text(*before),
        },
        {"role": "second_question", "start": after[0], "end": second[1], "text": text(*after)},
    ]


def _seconds(audio: Path) -> float:
    return float(soundfile.info(str(audio)).duration)


def _voiced(audio: Path, start: float, end: float) -> tuple[float, float] | None:
    """First and last second of loud sound within [start, end); None if there is none."""
    with soundfile.SoundFile(str(audio)) as file:
        rate = file.samplerate
        file.seek(min(round(start * rate), file.frames))
        count = max(0, min(round(end * rate), file.frames) - file.tell())
        pcm = file.read(count, always_2d=True).mean(axis=1)
    hop = max(1, round(0.03 * rate))
    frames = np.pad(pcm, (0, -len(pcm) % hop)).reshape(-1, hop)
    loud = np.flatnonzero(np.sqrt((frames**2).mean(axis=1)) >= _VOICED)
    if not len(loud):
        return None
    last = min(end, start + (int(loud[-1]) + 1) * hop / rate)
    return round(start + int(loud[0]) * hop / rate, 4), round(last, 4)
