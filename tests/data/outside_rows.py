"""Made-up rows in the layouts of outside sets; nothing of the sets themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import soundfile

from tests.judge.speech_clips import part


def sound(path: Path, *spans: tuple[float, float], seconds: float, rate: int = 16000) -> None:
    """Human speech in the given seconds, a little noise elsewhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pcm = np.random.default_rng(0).normal(0, 1e-4, round(seconds * rate))
    for n, (start, end) in enumerate(spans):
        said = part("two_cities", rate, 2.0 + 5 * n, end - start)
        pcm[round(start * rate) : round(start * rate) + len(said)] += said
    soundfile.write(path, pcm, rate, subtype="PCM_16")


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def full_duplex_bench(root: Path) -> Path:
    """One pause of 48 kHz with transcription, one without, and one interruption."""
    first = root / "v1_0" / "candor_pause_handling" / "12"
    sound(first / "input.wav", (0.5, 2.0), (3.0, 4.5), seconds=5.0, rate=48000)
    write(first / "pause.json", [{"text": "[PAUSE]", "timestamp": [2.0, 3.0]}])
    items = [{"text": "so", "timestamp": [0.5, 1.0]}, {"text": "yes", "timestamp": [3.1, 3.5]}]
    write(first / "transcription.json", [{"speaker": 0, "item": items}])
    second = root / "v1_0" / "synthetic_pause_handling" / "3"
    sound(second / "input.wav", (0.2, 1.2), (1.6, 2.4), (3.6, 4.4), seconds=5.03)
    pauses = [[1.2, 1.6], [2.4, 3.6]]
    write(second / "pause.json", [{"text": "[PAUSE]", "timestamp": pause} for pause in pauses])
    third = root / "v1_0" / "synthetic_user_interruption" / "1"
    sound(third / "input.wav", (0.3, 1.8), (4.0, 6.0), seconds=9.0)
    said = {"context": "Which books?", "interrupt": "No, which films?", "timestamp": [4.0, 6.0]}
    write(third / "interrupt.json", [said])
    return root


def humdial(root: Path) -> Path:
    """A Chinese request with a break between its second and third word."""
    folder = root / "test" / "cn_test_nondev" / "pause"
    sound(folder / "0007_0001.wav", (0.4, 1.9), (3.1, 4.6), seconds=8.0)
    segment = {"xmin": 0.4, "xmax": 4.6, "text": "帮我 [break] 订一张票"}
    write(folder / "0007_0001.json", {"speech_segments": [segment], "final_duration": 8.0})
    times = [(0.4, 1.0), (1.1, 1.9), (3.1, 3.6), (3.7, 4.6)]
    chunks = [{"text": c, "timestamp": list(t)} for c, t in zip("帮我订票", times, strict=True)]
    write(folder / "0007_0001_timestamp.json", {"chunks": chunks})
    write(folder / "clean_0007_0001.json", {})
    return root


def easy_turn(root: Path) -> Path:
    """Two incomplete clips, of one speaker and of none."""
    rows = []
    for k, speaker in enumerate(("G01", "<NONE>")):
        wav = f"incomplete/real/incomplete_real_{k}.wav"
        sound(root / "testset" / wav, (0.3, 1.5 + k), seconds=2.0 + k)
        rows.append(
            {"key": f"incomplete_real_{k}", "wav": f"./{wav}", "txt": "因为小时候<INCOMPLETE>"}
            | {"speaker": speaker, "duration": 2.0 + k}
        )
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path = root / "testset" / "incomplete" / "incomplete.list"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root
