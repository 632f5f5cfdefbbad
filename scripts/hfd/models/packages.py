"""Are the installed packages those of a model's environment file (``envs/<model>.yaml``)?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import yaml

ENVS = Path(__file__).parents[3] / "envs"


@dataclass(frozen=True)
class Packages:
    """What a model's environment file wants and this interpreter has.

    Attributes:
        file: the environment file, as it is named to the user.
        missing: packages that are not installed, with their versions.
        differing: installed and wanted version by name, where they are not the same release. A
            build's own part of a version (``2.13.0+cu130``) is no other release.
    """

    file: str
    missing: tuple[str, ...]
    differing: dict[str, tuple[str, str]]

    def warnings(self) -> list[str]:
        """One sentence for each package of another version."""
        return [
            f"{name} is {found}; {self.file}, which is what was tested, has {wanted}"
            for name, (found, wanted) in self.differing.items()
        ]


def compare_packages(file: Path) -> Packages:
    """Compare the pins of an environment file's ``pip:`` part with what is installed."""
    parts = yaml.safe_load(file.read_text(encoding="utf-8"))["dependencies"]
    pins = next(part["pip"] for part in parts if isinstance(part, dict))
    missing, differing = [], {}
    for pin in pins:
        name, wanted = pin.split("==")
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(pin)
            continue
        if found.partition("+")[0] != wanted:
            differing[name] = (found, wanted)
    return Packages(f"envs/{file.name}", tuple(missing), differing)
