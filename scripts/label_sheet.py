"""Make a page on which people mark take-overs and onsets in at most 60 blind clips."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from hfd.data.manifest import read_manifest
from hfd.errors import run_cli
from hfd.files import write_json
from hfd.judge.label_clips import MOST_CLIPS, draw_clips, sheet_key, sound_of
from hfd.judge.report.label_page import write_label_page


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--nonce", default="", help="draws the clips and their order")
    parser.add_argument("--most", type=int, default=MOST_CLIPS, help="how many clips at most")
    parser.add_argument("--out", type=Path, default=Path("labels"), help="folder of the labels")
    args = parser.parse_args(argv)

    samples = read_manifest(args.manifest, args.root, check_files=False)
    results = {model: args.results / model for model in args.models}
    clips = draw_clips(samples, results, args.nonce, args.most)
    key = sheet_key(clips, args.nonce)
    by_id = {sample.sample_id: sample for sample in samples}
    sounds = (sound_of(clip, by_id[clip.sample_id], results[clip.model]) for clip in clips)
    page = args.out / f"sheet_{key['sheet']}.html"
    with tempfile.TemporaryDirectory() as scratch:
        write_label_page(page, key["sheet"], sounds, Path(scratch))
    write_json(args.out / f"key_{key['sheet']}.json", key)
    print(f"{len(clips)} clips of {len(results)} models: {page.resolve().as_uri()}")
    print(
        f"give the page to two people; put the files they save into {args.out}/, then audit again"
    )


if __name__ == "__main__":
    run_cli(main)
