"""Cheats with what made the results: model, weights, settings, seed."""

from __future__ import annotations

from pathlib import Path

from hfd.judge.identity_check import fingerprint, sample_seed
from tests.judge.cheats.common import each, one
from tests.judge.forge import Forgery


def quantised(results: Path) -> None:
    for forgery in each(results):
        forgery.provenance["model"]["quantisation"] = "int4"
        forgery.write_documents()


def quantised_by_type(results: Path) -> None:
    for forgery in each(results):
        forgery.provenance["model"]["dtypes"] = {"torch.bfloat16": 3, "torch.int8": 290}
        forgery.write_documents()


def other_weights_for_one(results: Path) -> None:
    forgery = one(results)
    forgery.provenance["model"]["weights"] = "b" * 64
    forgery.write_documents()


def other_acceleration_for_one(results: Path) -> None:
    forgery = one(results)
    forgery.provenance["model"].setdefault("detail", {})["acceleration"] = "eager"
    forgery.write_documents()


def shared_times_for_one(results: Path) -> None:
    """One sample made beside three others, as every file of it says."""
    share_times(one(results))


def shared_times_called_own(results: Path) -> None:
    """All samples made side by side, and but for the traces nothing says so."""
    for forgery in each(results):
        forgery.lines[0]["sessions"] = 4
        forgery.seal_as_it_is()


def share_times(forgery: Forgery) -> None:
    """Make a result one of a worker that ran four samples side by side."""
    forgery.lines[0]["sessions"] = forgery.result["sessions"] = 4
    forgery.provenance["recipe"]["sessions"] = 4
    forgery.provenance["contract"]["max_sessions"] = 4
    forgery.provenance["shared"] = {"sessions": 4, "most_beside": 3, "mean_beside": 2.5}
    forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
    forgery.seal_as_it_is()


def other_seed_for_one(results: Path) -> None:
    """The best of two seeds: one sample made with another seed of the run, all hashes right."""
    forgery = one(results)
    forgery.provenance["recipe"]["seed"] = 2
    forgery.provenance["model"]["seed"] = sample_seed(2, forgery.folder.name)
    forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
    forgery.write_documents()


def settings_hidden(results: Path) -> None:
    """Settings other than those that made it, in every file; the fingerprint is left."""
    for forgery in each(results):
        forgery.provenance["model"]["settings"] = {"silence_s": 0.1}
        forgery.write_documents()


def another_model_renamed(results: Path) -> None:
    """Another model's run under this one's name, in trace and result."""
    for forgery in each(results):
        forgery.provenance["model"]["module"] = "cascade"
        forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
        forgery.write_documents()


def under_another_name(results: Path) -> None:
    for forgery in each(results):
        forgery.lines[0]["model"] = "other"
        forgery.seal()


def declared_otherwise(results: Path) -> None:
    for forgery in each(results):
        forgery.result["voice_origin"] = "post_tts"
        forgery.provenance["contract"]["voice_origin"] = "post_tts"
        forgery.write_documents()
