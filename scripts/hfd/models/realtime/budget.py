"""Money and time that all runs of one service together may spend.

The limits lie in a file of their own, so that raising one makes no result stale; what was spent is
one line a session in a ledger beside the logs, so that it outlives the worker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hfd.errors import HfdError
from hfd.models.settings import make_settings

LEDGERS = Path("logs/budgets")


@dataclass(frozen=True)
class Limits:
    """The content of a budget file.

    Attributes:
        max_minutes: minutes of sessions, or None.
        max_cost_usd: dollars, or None; needs `usd_per_minute` or `usd_per`.
        usd_per_minute: price of a minute of a session.
        usd_per: price of one of each thing that the service counts, by its dotted name
            (``output_tokens: 0.000064``).
    """

    max_minutes: float | None = None
    max_cost_usd: float | None = None
    usd_per_minute: float = 0.0
    usd_per: dict[str, Any] = field(default_factory=dict)


class Budget:
    """The limits and what has been spent of them."""

    def __init__(self, path: Path, ledgers: Path = LEDGERS) -> None:
        """Read the limits.

        Raises:
            HfdError: missing or broken file, or a limit on money without a price.
        """
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise HfdError(
                f"cannot be read ({error})", file=path, field="settings.budget"
            ) from error
        self._path = path
        self._limits = make_settings(Limits, content, "budget")
        self._ledger = ledgers / f"{path.stem}.jsonl"
        priced = self._limits.usd_per_minute or self._limits.usd_per
        if self._limits.max_cost_usd is not None and not priced:
            raise HfdError(
                "limits the cost, but has no price",
                file=path,
                field="max_cost_usd",
                remedy="Write usd_per_minute or usd_per",
            )

    def spent(self) -> tuple[float, float]:
        """Minutes and dollars of all sessions so far.

        Raises:
            HfdError: the ledger is damaged.
        """
        try:
            lines = self._ledger.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        minutes = dollars = 0.0
        for number, line in enumerate(lines, 1):
            try:
                session = json.loads(line)
                minutes += session["minutes"]
                dollars += self._cost(session["minutes"], session["used"])
            except (ValueError, KeyError, TypeError) as error:
                raise HfdError(
                    "is no line of a ledger",
                    file=f"{self._ledger}:{number}",
                    remedy="Mend it by hand: without it nobody knows what was spent",
                ) from error
        return minutes, dollars

    def check(self) -> None:
        """Whether another session may begin.

        Raises:
            HfdError: the budget is used up.
        """
        minutes, dollars = self.spent()
        for name, value, most in (
            ("max_minutes", minutes, self._limits.max_minutes),
            ("max_cost_usd", dollars, self._limits.max_cost_usd),
        ):
            if most is not None and value >= most:
                raise HfdError(
                    f"is used up: {value:.2f} of {most:g}",
                    file=self._path,
                    field=name,
                    remedy="What is finished stays. Raise the limit, then run again",
                )

    def spend(self, minutes: float, used: Mapping[str, float]) -> None:
        """Write down one session, however it ended."""
        self._ledger.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"minutes": round(minutes, 4), "used": dict(used)})
        with self._ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(line + "\n")

    def _cost(self, minutes: float, used: Mapping[str, float]) -> float:
        counted = sum(used.get(name, 0.0) * price for name, price in self._limits.usd_per.items())
        return float(minutes * self._limits.usd_per_minute + counted)
