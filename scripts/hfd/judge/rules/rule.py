"""What an audit rule is, and what it sees: one sample (`SampleCase`), or a model's (`SetCase`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hfd.judge import stats
from hfd.judge.findings import Finding
from hfd.judge.folder import Folder
from hfd.judge.intervals import Interval
from hfd.judge.probe import Probes
from hfd.judge.reference import Reference
from hfd.judge.transcript import NOTHING_HEARD, Transcripts
from hfd.judge.verdict import Verdict, failed, passed, unknown

if TYPE_CHECKING:
    from hfd.judge.sample import Record

FEWEST = 5
"""A pattern is told from chance only over this many samples."""


@dataclass(frozen=True)
class Policy:
    """What the project demands of a model's results.

    Attributes:
        voice_origin: what config/models.yaml says the model must deliver, or None.
        model: the model's name, which every file must carry, or None where nobody says it.
        module: the module under which config/models.yaml runs it, or None.
        deny_sha256: hashes of videos that must not be used (the old hesitation files).
    """

    voice_origin: str | None = None
    model: str | None = None
    module: str | None = None
    deny_sha256: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SampleCase:
    """What a rule sees of one sample.

    Attributes:
        folder: the result folder, with everything that is wrong with it by itself.
        reference: the sample's own files, or None where they are not at hand.
        policy: what the project demands.
        transcripts: what a recogniser heard in the wavs.
        speech: where the wav holds speech, in seconds; empty where it cannot be read.
    """

    folder: Folder
    reference: Reference | None
    policy: Policy
    transcripts: Transcripts = NOTHING_HEARD
    speech: Sequence[Interval] = ()


@dataclass(frozen=True)
class SetCase:
    """What a rule sees of one model.

    Attributes:
        records: one for each expected sample.
        extra: result folders that nobody asked for.
        doubles: sounds that the model's samples share with others, or None.
        probes: what running the model again found (A6, A12).
        has_manifest: whether it is known which samples are expected.
    """

    records: Sequence[Record]
    extra: Sequence[str]
    doubles: Verdict | None
    probes: Probes
    has_manifest: bool = True
    delivered: Sequence[Record] = field(init=False)
    """Records of samples with a result folder."""
    measured: Sequence[Record] = field(init=False)
    """Records of samples whose files could be measured."""

    def __post_init__(self) -> None:
        delivered = [record for record in self.records if record.verdicts]
        measured = [record for record in delivered if record.facts.get("clock")]
        object.__setattr__(self, "delivered", delivered)
        object.__setattr__(self, "measured", measured)


@dataclass(frozen=True)
class Rule:
    """An audit rule: what it is called, what it asks, and how it answers.

    Attributes:
        code: ``A1`` … ``A16``.
        title: its name.
        question: what it asks, in one line.
        passes_when: when it passes, for docs/audit.md.
        of_sample: its answer for one sample; None where only a set can answer.
        of_model: its answer for a model, given the combined answer of the model's samples; None
            where that answer is the model's.
    """

    code: str
    title: str
    question: str
    passes_when: str
    of_sample: Callable[[SampleCase], Verdict] | None = None
    of_model: Callable[[SetCase, Verdict], Verdict] | None = None


def from_findings(findings: Sequence[Finding]) -> Verdict:
    """A failure that names the first finding's place and keeps the others as evidence."""
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return failed(
        f"{first.place}: {first.message}{more}",
        findings=[finding.as_dict() for finding in findings[:20]],
    )


def by_findings(folder: Folder, code: str, good: str) -> Verdict:
    """The answer of a rule that the folder's own checks have looked at."""
    findings = [finding for finding in folder.findings if finding.rule == code]
    if findings:
        return from_findings(findings)
    if folder.track is None:
        return unknown("there is no readable trace")
    return passed(good, lines=len(folder.trace.lines))


ALMOST_NEVER = 1e-4


def over_set(
    suspects: Sequence[str], judged: int, honest_rate: float | Sequence[float], what: str
) -> Verdict | None:
    """A set's answer to a question that a single honest sample may fail by chance.

    Args:
        suspects: samples that look wrong.
        judged: how many were looked at.
        honest_rate: at most this share of honest samples looks wrong (measured: docs/audit.md), or
            for each sample looked at the chance that it does.
        what: what is wrong with them, after "3 of 8 samples ".

    Returns:
        A failure where so many suspects come from honest samples less than once in 10 000 sets,
        not evidenced where there are fewer, None where there are none.
    """
    if not suspects:
        return None
    from scipy.stats import poisson_binom  # takes seconds to import, and is seldom needed

    share = stats.wilson(len(suspects), judged)
    assert share is not None
    rates = [honest_rate] * judged if isinstance(honest_rate, float) else honest_rate
    told = (
        f"{len(suspects)} of {judged} samples {what}, first {suspects[0]} "
        f"(rate {share.value:.3f}, 95 % interval {share.low:.3f} to {share.high:.3f}; "
        f"at most {np.mean(rates):.2g} is honest)"
    )
    chance = float(poisson_binom.sf(len(suspects) - 1, rates))
    if chance < ALMOST_NEVER:
        return failed(told, samples=list(suspects))
    return unknown(f"{told}: too few to tell from chance, listen to them", samples=list(suspects))
