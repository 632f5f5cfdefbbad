"""One model over a manifest without Snakemake."""

import argparse

import pytest

from hfd.errors import HfdError
from hfd.jobs.spec import ModelSpec
from hfd.jobs.standalone import add_common_options, run_standalone
from tests.workflow.desk import MODELS_FOR_TESTS


def test_a_failing_sample_costs_itself_alone_and_a_broken_model_ends_the_run(
    desk, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(MODELS_FOR_TESTS)
    desk.add_samples(["a", "b", "c", "d"])
    desk.faults("beeper", error=["a"], broken=["c"])
    spec = ModelSpec("beeper", "testmodels.beeper", {"faults": str(desk.path / "beeper.faults")})
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    manifest, out = desk.path / "data" / "manifest.jsonl", desk.path / "out"
    common = ["--manifest", str(manifest), "--output-root", str(out), "--root", str(desk.path)]
    with pytest.raises(HfdError, match=r"^c: the model is beyond use: the server is gone"):
        run_standalone(spec, parser.parse_args(common))
    said = capsys.readouterr()
    assert said.out.startswith("b: ok") and "a: failed: this sample cannot" in said.err
    desk.faults("beeper", error=["a"])
    assert run_standalone(spec, parser.parse_args(common)) == 1
    assert capsys.readouterr().out.startswith("b: kept\nc: ok")
    assert {path.parent.name for path in out.glob("*/result.json")} == {"b", "c", "d"}
