"""What provenance says of how a result was made, for the report's card of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hfd.judge.sample import Record


_SAME = (
    "module",
    "identity",
    "weights",
    "hardware",
    "clock",
    "voice_origin",
    "turn_taking",
    "full_duplex",
)


def run_facts(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of one result; anything that is not recorded is None or empty."""
    model, env = provenance.get("model", {}), provenance.get("env", {})
    contract = provenance.get("contract", {})
    return {
        "made": provenance.get("clock", {}).get("wall_anchor"),
        "module": model.get("module"),
        "identity": model.get("name"),
        "weights": model.get("weights"),
        "settings": model.get("resolved") or model.get("settings") or {},
        "dtypes": sorted(model.get("dtypes") or {}) or sorted(_released(model)),
        "versions": model.get("versions") or {},
        "hardware": _hardware(model, env),
        "clock": contract.get("clock"),
        "voice_origin": contract.get("voice_origin"),
        "turn_taking": contract.get("turn_taking"),
        "full_duplex": (model.get("detail") or {}).get("full_duplex"),
        "black_box": bool((model.get("detail") or {}).get("black_box")),
        "unit_s": contract["unit_samples"] / 16_000 if contract.get("unit_samples") else None,
        "busy": bool(provenance.get("machine", {}).get("busy")),
        "others_cpu": provenance.get("machine", {}).get("others_cpu"),
        "attempt": provenance.get("attempt"),
        "sessions": (provenance.get("recipe") or {}).get("sessions", 1),
    }


def model_card(records: Sequence[Record]) -> dict[str, Any] | None:
    """What the samples of one model were made with; None where there is no result.

    Returns:
        Each of `run_facts` as the values that occur, the most frequent first; ``made`` as the
        first and the last date; ``busy`` as the number of results made on a busy machine;
        ``sessions`` as the most samples that ran side by side;
        ``black_box`` as whether any came from a closed service.
    """
    facts = [record.facts["run"] for record in records if record.facts.get("run")]
    if not facts:
        return None
    dates = sorted(fact["made"] for fact in facts if fact["made"])
    return {
        **{name: _common(fact[name] for fact in facts) for name in _SAME},
        "unit_s": _common(fact["unit_s"] for fact in facts),
        "dtypes": _common(", ".join(fact["dtypes"]) for fact in facts),
        "settings": facts[0]["settings"],
        "versions": facts[0]["versions"],
        "made": [dates[0], dates[-1]] if dates else [],
        "busy": sum(fact["busy"] for fact in facts),
        "sessions": max(fact["sessions"] for fact in facts),
        "black_box": any(fact["black_box"] for fact in facts),
        "results": len(facts),
        "again": sum((fact["attempt"] or 1) > 1 for fact in facts),
    }


def _hardware(model: Mapping[str, Any], env: Mapping[str, Any]) -> str:
    gpus = [str(name).split(",")[0] for name in env.get("gpu") or []]
    if gpus:
        return ", ".join(f"{n} x {name}" for name, n in Counter(gpus).items())
    cpu = env.get("cpu") or model.get("device") or "unknown"
    return f"{cpu} ({env['cpus']} CPUs)" if env.get("cpus") else str(cpu)


def _released(model: Mapping[str, Any]) -> list[str]:
    return [f"{part} {bits}" for part, bits in (model.get("as_released") or {}).items()]


def _common(values: Any) -> list[Any]:
    return [value for value, _ in Counter(values).most_common() if value not in (None, "")]
