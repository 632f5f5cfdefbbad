"""The measurement card of a model: every number with its boundary, for a paper's appendix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hfd.judge import stats
from hfd.judge.after_interruption import ANEW, RESUMES, SILENT
from hfd.judge.canary_summary import card_lines
from hfd.judge.definitions import STATED
from hfd.judge.measures import spread
from hfd.judge.run_facts import model_card
from hfd.judge.shared_times import most_sessions

if TYPE_CHECKING:
    from hfd.judge.sample import Record
    from hfd.judge.verdict import Verdict


@dataclass(frozen=True)
class Latency:
    """One of the meanings of "latency".

    Attributes:
        key: its name in summary.json.
        label, boundary: for people: what it is, and from which event to which.
    """

    key: str
    label: str
    boundary: str


LATENCIES = (
    Latency("unit", "cost of one unit", "compute of one input unit without output (virtual clock)"),
    Latency(
        "unit_to_text",
        "last input to first text",
        "end of the unit that the text depends on -> first text after the question, run's clock",
    ),
    Latency(
        "codec",
        "last input to first codec token",
        "not in the trace: models report no single codec tokens",
    ),
    Latency(
        "unit_to_audio",
        "input received to first playable sound",
        "unit given over -> first audio chunk after the question, run's clock",
    ),
    Latency(
        "user_to_user",
        "user to user",
        "end of the user's last word -> first voice of the wav; with the network only on the "
        "arrival clock (H9)",
    ),
    Latency("first_text", "question to first text", "end of the question -> first text (H12)"),
    Latency(
        "first_audio", "question to first sound", "end of the question -> first audio packet (H13)"
    ),
)


def measurement_card(records: Sequence[Record], rules: dict[str, Verdict]) -> dict[str, Any] | None:
    """The card of one model, JSON values; None where it has no result.

    Args:
        records: one for each expected sample.
        rules: the audit's answers, by code.
    """
    facts = [r.facts["measures"] for r in records if r.facts.get("measures")]
    made_of = model_card(records)
    if not facts or made_of is None:
        return None
    units = [cost for fact in facts for cost in fact["listening_s"]]
    metric = {"user_to_user": "h9_response_s", "first_text": "h12_first_text_s"}
    metric["first_audio"] = "h13_first_audio_s"
    values: dict[str, list[float]] = {
        "unit": units,
        "unit_to_text": _known(fact["unit_to_text_s"] for fact in facts),
        "codec": [],
        "unit_to_audio": _known(fact["unit_to_audio_s"] for fact in facts),
        **{name: _known(r.metrics.get(key) for r in records) for name, key in metric.items()},
    }
    return {
        "identity": made_of["identity"],
        "weights": made_of["weights"],
        "made": made_of["made"],
        "hardware": made_of["hardware"],
        "clock": made_of["clock"],
        "sessions": most_sessions(records),
        "audio_block_s": made_of["unit_s"],
        "input_rate_hz": 16_000,
        "frames_per_s": spread([fact["frames_per_s"] for fact in facts]),
        "context_tokens": spread(_known(fact["context_tokens"] for fact in facts)),
        "latencies_s": {name: spread(found) for name, found in values.items()},
        "real_time_factor": spread(_compute_per_media(records)),
        "playback_buffer_s": spread([s for fact in facts for s in fact["buffer_s"]]),
        "chunk_s": spread([s for fact in facts for s in fact["chunk_s"]]),
        "network_rtt_ms": spread(_known(fact["rtt_ms"] for fact in facts)),
        "transport": {"lag_s": spread([lag for fact in facts for lag in fact["lag_s"]])},
        "inference": {
            "growth": asdict(grows) if (grows := growth_estimate(records)) else None,
            "verdict": rules["A17"].status if "A17" in rules else None,
        },
        "interaction": _interaction(records),
        "results": made_of["results"],
    }


def growth_estimate(records: Sequence[Record]) -> stats.Estimate | None:
    """Mean growth of a unit's compute with its past (`measures.growth`), with a 95 % interval."""
    found = [
        (value, str(r.facts.get("cluster", r.sample_id)))
        for r in records
        if r.facts.get("measures") and (value := r.facts["measures"]["growth"]) is not None
    ]
    if not found:
        return None
    return stats.mean([value for value, _ in found], [name for _, name in found])


def _interaction(records: Sequence[Record]) -> dict[str, Any]:
    """Does it hold in a pause, stop when interrupted, answer anew, keep silent where it should?"""

    def share(key: str, good: bool) -> dict[str, float] | None:
        scored = [r.metrics[key] for r in records if r.metrics.get(key) is not None]
        if not scored:
            return None
        return {"share": sum(v is good for v in scored) / len(scored), "n": len(scored)}

    after = [what for r in records if (what := r.facts.get("after_interruption"))]

    def became(what: str) -> dict[str, float] | None:
        return {"share": after.count(what) / len(after), "n": len(after)} if after else None

    silent = [r for r in records if r.facts.get("measures") and r.facts.get("asked") is False]
    spoke = sum(r.status == "ok" for r in silent)
    return {
        "holds_in_the_pause": share("h1_gap_takeover", False),
        "stops_when_interrupted_s": spread(_known(r.metrics.get("h8_yield_s") for r in records)),
        "answers_anew_when_interrupted": became(ANEW),
        "resumes_its_old_answer_when_interrupted": became(RESUMES),
        "falls_silent_when_interrupted": became(SILENT),
        "answers_the_question": share("h11_responded", True),
        "speaks_unasked": {"share": spoke / len(silent), "n": len(silent)} if silent else None,
    }


def _compute_per_media(records: Sequence[Record]) -> list[float]:
    found = []
    for record in records:
        measures = record.facts.get("measures")
        compute = record.facts.get("compute_s")
        if measures and compute is not None:
            found.append(compute / measures["media_s"])
    return found


def _known(values: Any) -> list[float]:
    return [float(value) for value in values if value is not None]


def card_markdown(model: str, card: dict[str, Any]) -> str:
    """The card as a page of Markdown, to be pasted."""
    lines = [f"# Measurement card: {model}", ""]
    plain = [
        ("Model", " / ".join(card["identity"])),
        ("Weights", " / ".join(card["weights"])),
        ("Made", " - ".join(dict.fromkeys(date[:10] for date in card["made"]))),
        ("Hardware", " / ".join(card["hardware"])),
        ("Clock", " / ".join(card["clock"])),
        ("Sessions at a time", _sessions(card["sessions"])),
        ("Input", f"16 kHz mono, blocks of {_list(card['audio_block_s'])} s"),
        ("Video frames taken per second", _cell(card["frames_per_s"])),
        ("Context at the end, tokens", _cell(card["context_tokens"])),
        ("Real-time factor (compute / media)", _cell(card["real_time_factor"])),
        ("Output chunk, s", _cell(card["chunk_s"])),
        ("Playback buffer (queued before it plays), s", _cell(card["playback_buffer_s"])),
        ("Network round trip, ms", _cell(card["network_rtt_ms"])),
        ("Transport: lag of input units, s", _cell(card["transport"]["lag_s"])),
        ("Inference: growth of a unit's cost with its past", _growth(card["inference"])),
    ]
    lines += ["| what | P50 / P95 / max (n) |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in plain]
    lines += ["", "| latency | from -> to | P50 / P95 / max (n), s |", "|---|---|---|"]
    for latency in LATENCIES:
        value = _cell(card["latencies_s"][latency.key])
        lines.append(f"| {latency.label} | {latency.boundary} | {value} |")
    lines += ["", f"| interaction ({STATED}) | |", "|---|---|"]
    for name, value in card["interaction"].items():
        text = _cell(value) if value is None or "p50" in value else _share(value)
        lines.append(f"| {name.replace('_', ' ')} | {text} |")
    lines += [f"| {name} | {value} |" for name, value in card_lines(card.get("canary"))]
    return "\n".join(lines) + "\n"


def _sessions(count: int) -> str:
    return str(count) if count == 1 else f"{count}: times are shared, and left out here"


def _cell(value: dict[str, float] | None) -> str:
    if value is None:
        return ""
    return f"{value['p50']:.3g} / {value['p95']:.3g} / {value['max']:.3g} ({value['n']})"


def _share(value: dict[str, float]) -> str:
    return f"{100 * value['share']:.0f} % ({value['n']})"


def _growth(inference: dict[str, Any]) -> str:
    found = inference["growth"]
    if found is None:
        return ""
    interval = "" if found["low"] is None else f" [{found['low']:.2f}, {found['high']:.2f}]"
    return f"{found['value']:.2f}{interval} ({found['n']})"


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
