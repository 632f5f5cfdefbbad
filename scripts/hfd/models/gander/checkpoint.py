"""Everything that is wrong with Gander's files, found before any of its code runs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from hfd.errors import HfdError
from hfd.files import sha256_bytes, sha256_file
from hfd.models.gander.settings import Settings
from hfd.models.minicpmo.checkpoint import shard_names, shard_problems
from hfd.models.weights import sampled_file

PACKAGE = Path("minicpm_ft")
CODE = (
    "mcpmft/args.py",
    "mcpmft/infer/common.py",
    "mcpmft/infer/online.py",
    "mcpmft/infer/streaming_text.py",
    "mcpmft/modeling/load.py",
    "mcpmft/tokenizer_tools.py",
    "mcpmft/tool_protocol.py",
)
"""What runs of the public package; hashed into the identity."""
MANIFEST = "release_manifest.json"


@dataclass(frozen=True)
class Release:
    """Where Gander's parts lie.

    Attributes:
        package: the folder to import ``mcpmft`` from.
        thinker, talker: folders of checkpoints.
        manifest: the release's manifest, if it has one.
    """

    package: Path
    thinker: Path
    talker: Path
    manifest: Path | None


def find_release(settings: Settings) -> Release:
    """The parts of either layout; nothing is looked into yet."""
    package = Path(settings.repo_path).expanduser() / PACKAGE
    if settings.gander_path:
        folder = Path(settings.gander_path).expanduser()
        manifest = folder / MANIFEST
        return Release(
            package, folder / "thinker", folder / "talker", manifest if manifest.is_file() else None
        )
    assert settings.thinker_path and settings.talker_path  # `parse_settings` has seen to it
    thinker, talker = Path(settings.thinker_path), Path(settings.talker_path)
    return Release(package, thinker.expanduser(), talker.expanduser(), None)


def release_problems(release: Release) -> list[str]:
    """What is missing or broken, one sentence each."""
    problems = [
        f"repo_path: file {PACKAGE / name} is missing"
        for name in CODE
        if not (release.package / name).is_file()
    ]
    for name, folder in (("thinker", release.thinker), ("talker", release.talker)):
        if not folder.is_dir():
            problems.append(f"{name}: {folder} is no folder")
            continue
        problems += [f"{name}: {problem}" for problem in shard_problems(folder)]
    if release.thinker.is_dir():
        files = ("tokenizer.json", "vocab.json")
        if not any((release.thinker / name).is_file() for name in files):
            problems.append("thinker: file tokenizer.json is missing (or vocab.json)")
    return problems


def code_hashes(release: Release) -> dict[str, str]:
    """SHA-256 of the public package's files that run."""
    return {name: sha256_file(release.package / name) for name in CODE}


def commit(release: Release) -> str | None:
    """Commit of the clone, with ``+`` if it was changed; None where it is no clone."""
    git = ["git", "-C", str(release.package)]
    try:
        found = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{found}+" if changed else found


def weights_hash(release: Release, base: str) -> str:
    """Hash over the base's hash and a sample of both checkpoints' shards."""
    parts = [base]
    for folder in (release.thinker, release.talker):
        for name in shard_names(folder):
            parts.append(str(sampled_file(folder / name)))
    return sha256_bytes("\n".join(parts).encode())


def refuse(settings: Settings, problems: list[str]) -> None:
    """Raise one error that says everything that is wrong."""
    if problems:
        raise HfdError(
            "cannot be run:\n  " + "\n  ".join(problems),
            file=settings.gander_path or settings.thinker_path,
            field="settings",
            remedy="See docs/gander.md, Install",
        )
