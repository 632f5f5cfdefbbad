"""Which numbers are compared between models, and how a lost sample counts in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hfd.judge.metrics import YIELD_S
from hfd.judge.outcome import UNUSABLE
from hfd.judge.sample import Record
from hfd.judge.strata import HESITATION


@dataclass(frozen=True)
class Rate:
    """A yes/no metric.

    Attributes:
        key: its name in the tables.
        label: for people.
        bad: the value that counts against the model.
        needs: the samples in which it is defined: where the user hesitates, where a question is
            asked, where an outside set asks for it, or only where a model was speaking (then no
            lost sample can count in it).
    """

    key: str
    label: str
    bad: bool
    needs: Literal["hesitation", "question", "speech", "outside"] = "hesitation"


RATES = (
    Rate("h1_gap_takeover", "H1 takes the turn in the gap", True),
    Rate("h2_prefix_barge_in", "H2 barges in on the prefix", True),
    Rate("h3_correction_barge_in", "H3 barges in on the correction", True),
    Rate("h5_hold_failure", "H5 hold failure (H1, H2 or H3)", True),
    Rate("h8_no_yield", "H8 does not yield within 2 s", True, "speech"),
    Rate("h10_spanning", "H10 speech spans the question's end", True, "question"),
    Rate("h11_responded", "H11 responds before the file ends", False, "question"),
    Rate("h11_late", "H11 responds late", True, "question"),
    Rate("h18_abrupt_end", "H18 ends abruptly", True, "speech"),
    Rate("fdb_tor_whole", "FDB take-over over the whole file", True),
    Rate("mtr_pause", "MTR take-over in the pause + 1 s", True),
    Rate("fdb_pause_tor", "Full-Duplex-Bench pause take-over", True, "outside"),
    Rate(
        "fdb_interruption_tor", "Full-Duplex-Bench take-over after interruption", False, "outside"
    ),
    Rate("wait_held", "holds while it should wait", False, "outside"),
)
RATE = {rate.key: rate for rate in RATES}
VALUES = {
    "h6_overlap_s": "H6 overlap with the user, s",
    "fdb_overlap_s": "FDB overlap of turns, s",
    "h6_overlap_ratio": "H6 overlap, share of the user's speech",
    "h7_gap_speech_s": "H7 speech in the gap, s",
    "h8_yield_s": "H8 time to yield, s",
    "h9_response_s": "H9 response latency, s",
    "h9_settled_s": "H9 settled start after the question, s",
    "h12_first_text_s": "H12 first text, s",
    "h13_first_audio_s": "H13 first audio packet, s",
    "h14_text_to_audio_s": "H14 text to audio, s",
    "h15_underrun_s": "H15 playback underrun, s",
    "h16_rtf_compute": "H16 compute per second of speech",
    "h16_rtf_stream": "H16 stream time per second of speech",
    "h17_saved_minus_delivered_s": "H17 saved minus delivered, s",
    "h20_wer": "H20 word error rate of the voice",
    "h21_han_per_s": "H21 Chinese characters per second",
    "fdb_latency_s": "Full-Duplex-Bench latency after interruption, s",
    "h22_stale_share": "H22 words of the abandoned question (proxy)",
}
LATENCY = "h9_response_s"
HORIZON_S = 10.0
"""A latency is compared up to this many seconds; no answer by then counts as this much."""


def rate_of(record: Record, key: str) -> bool | None:
    """A yes/no metric of one sample; None where it is not defined."""
    if key == "h8_no_yield":
        seconds = record.metrics.get("h8_yield_s")
        return None if seconds is None else seconds > YIELD_S
    return record.metrics.get(key)


def belongs(record: Record, rate: Rate) -> bool:
    """Whether a sample belongs to a rate's strict denominator, whatever the model made of it."""
    if rate.needs == "speech":
        return False
    if rate.needs == "outside":
        return rate.key in record.facts.get("scores", ())
    if rate.needs == "question":
        return bool(record.facts.get("asked", record.metrics.get(rate.key) is not None))
    return bool(record.facts.get("hesitates", record.task == HESITATION))


def is_lost(record: Record, rate: Rate) -> bool:
    """Whether a sample that should count has no result that can be measured."""
    return record.status in UNUSABLE and belongs(record, rate)


def strict_rate_of(record: Record, rate: Rate) -> bool | None:
    """The rate with a lost sample counted against the model; None where it does not belong."""
    if is_lost(record, rate):
        return rate.bad
    return rate_of(record, rate.key)


def cluster_of(record: Record) -> str:
    """What a sample shares with others, so that they are drawn together; else its own id."""
    return str(record.facts.get("cluster", record.sample_id))
