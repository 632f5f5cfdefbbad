"""A12: was the context never cropped?"""

from __future__ import annotations

from hfd.judge.delivered import CUTS
from hfd.judge.rules.rule import Rule, SampleCase, SetCase
from hfd.judge.verdict import FAIL, PASS, Verdict, failed, merged, passed, unknown


def of_sample(case: SampleCase) -> Verdict:
    """The context a model reports after its steps may only grow within a sample."""
    folder = case.folder
    if folder.track is None:
        return unknown("there is no readable trace")
    longest, seen, cut, shortened = 0, False, False, None
    for number, line in folder.trace.of("metric", "control"):
        if line["kind"] == "control":
            cut = cut or line["control"] in CUTS
            continue
        tokens = line["values"].get("context_tokens")
        if line["values"].get("dropped_tokens"):
            return failed(f"{line['values']['dropped_tokens']} tokens were dropped", line=number)
        if not isinstance(tokens, int | float):
            continue
        if tokens < longest and cut:
            shortened = shortened or f"context went from {longest} to {tokens} tokens after a cut"
        elif tokens < longest:
            return failed(f"context shrank from {longest} to {tokens} tokens", line=number)
        longest, seen, cut = int(tokens), True, False
    if folder.result.value.get("truncated"):
        return unknown("the result says truncated: a limit of the model cut the answer short")
    if shortened:
        return unknown(f"{shortened}: what was not heard may be forgotten, nothing else")
    if not seen:
        return unknown("the trace holds no context_tokens metric")
    limit = folder.provenance.value.get("model", {}).get("max_context_tokens")
    return passed(f"context grew to {longest} tokens and never shrank", tokens=longest, limit=limit)


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """What the traces report, or what the needle probe proves where they report nothing."""
    needle = case.probes.needle
    proven = needle.status == PASS and not any(r.facts["truncated"] for r in case.measured)
    if samples.status == FAIL or (samples.status == PASS and not proven):
        return samples
    if samples.status == PASS:
        return passed(f"{samples.reason}; {needle.reason}", **samples.evidence)
    return needle if proven else merged(samples, unknown(needle.reason, **needle.evidence))


RULE = Rule(
    "A12",
    "Context",
    "Was the context never cropped?",
    "reported context never shrinks (`context_tokens` in metrics), nothing dropped (a result that "
    "says `truncated` is not evidenced); or, where a trace reports nothing, "
    "`snakemake needle_probe_<model>`: input changed only before T still changes the answer at "
    "the end",
    of_sample,
    of_model,
)
