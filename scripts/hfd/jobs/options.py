"""The options of every hand-run command; light, so that ``--help`` needs no package."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfd.errors import HfdError


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """The options that every hand-run command has; --only and --set may be given several times."""
    parser.add_argument("--manifest", required=True, type=Path)
    parser.add_argument("--output-root", required=True, type=Path, help="gets <sample_id>/ folders")
    parser.add_argument("--root", type=Path, default=Path(), help="what manifest paths start from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--sessions", type=int, help="samples side by side on one loaded model; times are shared"
    )
    parser.add_argument(
        "--only", nargs="*", action="extend", metavar="ID", help="run these samples only"
    )
    parser.add_argument(
        "--set",
        nargs="*",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="more settings, values as YAML",
    )


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """``["threshold=0.6"]`` as ``{"threshold": 0.6}``."""
    import yaml

    settings: dict[str, Any] = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found:
            raise HfdError(f"is {text!r}", field="--set", remedy="Write KEY=VALUE")
        try:
            settings[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise HfdError(
                f"is {value!r}, no YAML", field=f"--set {key}", remedy="Quote the value"
            ) from error
    return settings
