"""A6: does input after T leave the outputs before T as they were? Only a rerun can tell."""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SetCase
from hfd.judge.verdict import Verdict


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    return case.probes.prefix


RULE = Rule(
    "A6",
    "Prefix invariance",
    "Does input after T leave the outputs before T as they were?",
    "`snakemake prefix_probe_<model>`: samples run again with input changed only after T say the "
    "same before T",
    of_model=of_model,
)
