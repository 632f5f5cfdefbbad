"""One model over a manifest without Snakemake."""

import argparse

import pytest

from hfd.errors import HfdError
from hfd.jobs.options import add_common_options, parse_settings
from hfd.jobs.spec import ModelSpec
from hfd.jobs.standalone import run_standalone
from tests.workflow.desk import MODELS_FOR_TESTS


@pytest.fixture
def parse(desk):
    """Parse more options after the ones that every command needs."""
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    manifest, out = desk.path / "data" / "manifest.jsonl", desk.path / "out"
    common = ["--manifest", str(manifest), "--output-root", str(out), "--root", str(desk.path)]
    return lambda *more: parser.parse_args([*common, *more])


@pytest.fixture
def spec(desk, monkeypatch):
    monkeypatch.syspath_prepend(MODELS_FOR_TESTS)
    desk.add_samples(["a", "b", "c", "d"])
    settings = {"faults": str(desk.path / "beeper.faults")}
    return ModelSpec("beeper", "testmodels.beeper", settings)


def test_a_failing_sample_costs_itself_alone_and_a_broken_model_ends_the_run(
    desk, parse, spec, capsys
):
    desk.faults("beeper", error=["a"], broken=["c"])
    with pytest.raises(HfdError, match=r"the model is beyond use: the server is gone"):
        run_standalone(spec, parse())
    said = capsys.readouterr().out
    assert "b: ok: '1 2 3 4 '\n" in said and "a: failed: ValueError: this sample cannot" in said
    desk.faults("beeper", error=["a"])
    assert run_standalone(spec, parse()) == 1
    said = capsys.readouterr().out
    assert "b: kept\n" in said and "c: ok: " in said and "d: ok: " in said
    assert "a: failed: ValueError: this sample cannot be answered" in said
    assert {path.parent.name for path in desk.path.glob("out/*/result.json")} == {"b", "c", "d"}
    desk.faults("beeper")
    assert run_standalone(spec, parse()) == 0
    assert capsys.readouterr().out.count("kept") == 3


def test_options_given_twice_keep_both(parse):
    args = parse("--only", "a", "--set", "x=1", "y=null", "--only", "b", "c", "--set", "z=[1, 2]")
    assert args.only == ["a", "b", "c"]
    assert parse_settings(args.set) == {"x": 1, "y": None, "z": [1, 2]}


def test_a_sample_that_the_manifest_has_not_is_named(parse, spec):
    with pytest.raises(HfdError, match="has no sample 'nobody'"):
        run_standalone(spec, parse("--only", "a", "nobody"))
