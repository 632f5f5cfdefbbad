"""Measure how often each rule is wrong about honest runs, and write it into docs/audit.md.

Usage: ``PYTHONPATH=scripts python -m tests.judge.false_alarms --sets 40 [--chinese FOLDER]``
(FOLDER: wavs with their texts, for example those of the package pytest-audioeval).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hfd.files import sha256_file
from hfd.judge.folder import foreign_folders
from hfd.judge.metrics import words
from hfd.judge.probe import read_probes
from hfd.judge.recogniser import bundled_model, recogniser
from hfd.judge.reference import Reference, read_reference
from hfd.judge.rules import RULES, judge_model
from hfd.judge.rules.a14_completeness import duplicates
from hfd.judge.rules.rule import Policy, SetCase
from hfd.judge.sample import Record, audit_sample
from hfd.judge.transcript import NOTHING_HEARD, Transcripts
from hfd.judge.verdict import FAIL, NOT_EVIDENCED, Verdict
from tests.judge.honest import Manner, chinese_clips, manners, run_honest
from tests.judge.world import World, build_world

DOCS = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
POLICY = Policy("native_talker")


def audited(
    world: World, results: Path, references: dict[str, Reference], listen=None
) -> tuple[list[Record], dict[str, Verdict]]:
    """The records and the verdicts of one set, its wavs listened to where `listen` is given."""
    records = []
    for sample in world.samples:
        folder = results / sample.sample_id
        if not folder.is_dir():
            continue
        heard = NOTHING_HEARD
        text = json.loads((folder / "result.json").read_text(encoding="utf-8"))["text"]
        latin, han = words(text)
        if listen is not None and latin > han:
            wav = folder / "assistant_audio.wav"
            digest = sha256_file(wav)
            heard = Transcripts({digest: {"wav_sha256": digest, **listen(wav)}})
        reference = references[sample.sample_id]
        records.append(audit_sample(folder, "m", sample.task, reference, POLICY, transcripts=heard))
    extra = foreign_folders(results, {sample.sample_id for sample in world.samples})
    doubles = duplicates(records).get("m")
    return records, judge_model(SetCase(records, extra, doubles, read_probes(None, "m")))


def worlds(root: Path, hesitation: int, other: int) -> list[tuple[World, dict[str, Reference]]]:
    """Varied questions; one clip at varied times; one clip at one time."""
    found = []
    for kind in ("varied", "one_clip", "alike"):
        world = build_world(root / kind, hesitation, other, kind)
        found.append((world, {s.sample_id: read_reference(s, None) for s in world.samples}))
    return found


def measure(args: argparse.Namespace) -> Iterator[tuple[Manner, list[Record], dict[str, Verdict]]]:
    listen = recogniser(bundled_model(), "en")
    clips = chinese_clips(args.chinese)
    with tempfile.TemporaryDirectory() as folder:
        places = worlds(Path(folder), 12, 4)
        for number, manner in enumerate(manners(args.first + args.sets, args.seed)):
            if number < args.first:
                continue
            world, references = places[number % len(places)]
            results = run_honest(world, f"set{number}", manner, clips)
            yield manner, *audited(world, results, references, listen)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chinese", type=Path)
    parser.add_argument("--write", action="store_true", help="into docs/audit.md")
    args = parser.parse_args(argv)
    began = time.monotonic()
    wrong: dict[str, Counter] = {rule.code: Counter() for rule in RULES}
    samples = sets = 0
    for manner, records, verdicts in measure(args):
        sets += 1
        samples += len(records)
        for code, verdict in verdicts.items():
            wrong[code]["sets " + verdict.status] += 1
            for record in records:
                if code in record.verdicts:
                    wrong[code]["samples " + record.verdicts[code].status] += 1
                    if record.verdicts[code].status == FAIL:
                        print("sample", code, record.verdicts[code].reason, flush=True)
            if verdict.status == FAIL:
                print("SET", code, verdict.reason, manner, flush=True)
        print(f"{sets} sets, {samples} samples, {time.monotonic() - began:.0f} s", flush=True)
        print(json.dumps(wrong), flush=True)
    text = table(wrong, samples, sets)
    print(text)
    if args.write:
        docs = DOCS.read_text(encoding="utf-8")
        begin, end = "<!-- false alarms -->\n", "\n<!-- /false alarms -->"
        before, rest = docs.split(begin)
        DOCS.write_text(before + begin + text + end + rest.split(end, 1)[1], encoding="utf-8")


def table(wrong: dict[str, Counter], samples: int, sets: int) -> str:
    rows = [
        f"| rule | samples that fail, of {samples} | sets that fail, of {sets} | "
        "sets not evidenced |",
        "|---|---|---|---|",
    ]
    for rule in RULES:
        count = wrong[rule.code]
        single = str(count[f"samples {FAIL}"]) if rule.of_sample else "asks sets only"
        rows.append(
            f"| {rule.code} | {single} | {count[f'sets {FAIL}']} | "
            f"{count[f'sets {NOT_EVIDENCED}']} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
