"""What the reruns of one model left (hfd.probes.disturbed), as far as it belongs to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.files import read_json
from hfd.judge.noise_floor import repeated
from hfd.judge.probe import rerun_ids, unbound
from hfd.judge.reruns import RERUNS


def read_reruns(
    folder: Path, model: str, samples: Sequence[Sample], tails: Mapping[str, str], nonce: str
) -> dict[str, Any]:
    """The stored reruns of a model, ``<folder>/<kind>/<model>.json``.

    Args:
        folder: of the probes; what they ran lies in ``<folder>/../probe``.
        model: its name.
        samples: of the manifest.
        tails: trace tails of the results that are judged, by sample.
        nonce: what the auditor had asked the samples to be drawn with.

    Returns:
        By kind what was found for each sample (of ``repeat``: the noise floor), and under
        ``unbound``, by kind, why a file says nothing of these results.
    """
    found: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for kind in RERUNS:
        path = folder / kind / f"{model}.json"
        if not path.is_file():
            continue
        try:
            stored = read_json(path)
            listed = dict(stored["samples"])
            problem = unbound(stored.get("bound"), tails, nonce, rerun_ids(samples, tails))
            if problem is None and set(listed) != set(stored["bound"]["samples"]):
                problem = "the probe's samples were not drawn from the results' hash"
        except (HfdError, AttributeError, KeyError, TypeError, ValueError) as error:
            problems[kind] = f"{path.name} is no probe ({error})"
            continue
        if problem:
            problems[kind] = f"{problem}: run it again"
            continue
        found[kind] = listed
        if kind == "repeat":
            mine = [sample for sample in samples if sample.sample_id in listed]
            found[kind] = repeated(folder.parent / "probe" / kind / model, model, mine)
    return found | ({"unbound": problems} if problems else {})
