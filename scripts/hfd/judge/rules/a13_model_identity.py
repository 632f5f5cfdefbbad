"""A13: did one model, unquantised, make all samples?"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from hfd.judge.findings import PROVENANCE
from hfd.judge.rules.rule import Rule, SampleCase, SetCase, from_findings
from hfd.judge.verdict import Verdict, failed, merged, passed, unknown

_FEW_BITS = re.compile(r"\b(u?int[48]|[iu][48]|f8\w*|float8\w*|fp[48]|nf4|q[2-8]\w*)\b")
"""Types of quantised weights; int64 and the like are indices and pass."""


def of_sample(case: SampleCase) -> Verdict:
    findings = [finding for finding in case.folder.findings if finding.rule == "A13"]
    if findings:
        return from_findings(findings)
    model = case.folder.provenance.value.get("model")
    if not model:
        return unknown(f"{PROVENANCE} does not name the model")
    other = _another_model(case, model)
    if other:
        return failed(other)
    quantisation = model.get("quantisation")
    if quantisation not in (None, False, "none", ""):
        return failed(f"the model is quantised: {quantisation}")
    types = model.get("dtypes") or {}
    low = [name for name in types if _FEW_BITS.search(name.lower())]
    if low:
        return failed(f"weights of type {', '.join(low)}")
    if not model.get("weights"):
        return unknown("no hash or revision of the weights is recorded")
    released = model.get("as_released") or {}
    named = [*types, *(f"{part} {bits} as released" for part, bits in released.items())]
    if not named:
        return unknown("weights are named, but the types of their numbers are not recorded")
    if "recipe" not in case.folder.provenance.value:
        return unknown(f"an older {PROVENANCE}: its fingerprint cannot be computed again")
    return passed(f"{model['name']} ({', '.join(named)})", weights=model["weights"])


def _another_model(case: SampleCase, model: dict[str, Any]) -> str | None:
    """Where the result was made by another model than the one whose folder it lies in."""
    policy, named = case.policy, case.folder.trace.header.get("model")
    if policy.model is not None and named is not None and named != policy.model:
        return f"the trace is of the model {named!r}, in the folder of {policy.model!r}"
    if policy.module is not None and model["module"] != policy.module:
        return f"module {model['module']!r} made it, config/models.yaml runs {policy.module!r}"
    return None


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Weights, settings, acceleration, sessions and rate must be the same in every sample."""
    kinds: dict[str, list[str]] = defaultdict(list)
    values: dict[str, set[str]] = defaultdict(set)
    for record in case.measured:
        if "identity" in record.facts:
            kinds[repr(record.facts["identity"])].append(record.sample_id)
            for name, value in record.facts["identity"].items():
                values[name].add(repr(value))
    if len(kinds) <= 1:
        return samples
    fewest = min(kinds.values(), key=len)
    differing = ", ".join(name for name, found in values.items() if len(found) > 1)
    mixed = failed(
        f"samples come from {len(kinds)} different models or settings ({differing} differ),"
        f" for example {fewest[0]}",
        samples=fewest,
    )
    return merged(mixed, samples)


RULE = Rule(
    "A13",
    "Model identity",
    "Did one model, unquantised, make all samples?",
    "one set of module, weights, settings, seed, acceleration, sessions, contract and rate in all "
    "samples, "
    "of the model whose folder it is; each sample's seed and fingerprint are computed again from "
    "what provenance says; no quantisation; types of numbers recorded (`dtypes`, or `as_released` "
    "by part)",
    of_sample,
    of_model,
)
