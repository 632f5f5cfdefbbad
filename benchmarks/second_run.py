"""What the workflow costs beside its jobs: five models, each with every sample finished.

Usage: python benchmarks/second_run.py [--samples 1024] [--models 5]

Beside it, in the same run, a trivial workflow of as many files: one rule that copies nothing, four
outputs for each sample and model, one input for each shard. Printed are the seconds of processor
time of an unchanged second run and of a dry run of both, and their ratios. The results are made by
hand from one sample that was really computed, and declared finished with ``snakemake --touch``.
Exit code 1 if the second run starts a job or a ratio is above 1.5.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.workflow.desk import Desk  # noqa: E402

from hfd.files import sha256_file  # noqa: E402
from hfd.jobs.schedule import Schedule  # noqa: E402
from hfd.jobs.schema import SchemaFile  # noqa: E402
from hfd.jobs.spec import Recipe  # noqa: E402
from hfd.jobs.store import FILES  # noqa: E402

MOST = 1.5
SHARDS = 10
TRIVIAL = """
SAMPLES = {samples}
MODELS = {models}

rule all:
    input: expand("results/{{model}}/{{sample}}/result.json", model=MODELS, sample=SAMPLES)
    localrule: True

rule publish:
    input: lambda w: f"tickets/{{w.model}}.{{int(w.sample[1:]) % {shards}}}"
    output: {outputs}
    localrule: True
    shell: "touch {{output:q}}"
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--models", type=int, default=5)
    args = parser.parse_args()
    samples = [f"s{number:04d}" for number in range(args.samples)]
    models = [f"model_{number}" for number in range(args.models)]
    with tempfile.TemporaryDirectory() as name:
        ours, trivial = Path(name, "ours"), Path(name, "trivial")
        ours.mkdir()
        trivial.mkdir()
        desk = _finished_desk(ours, samples, models)
        run_trivial = _trivial(trivial, samples, models)
        worst, idle = 0.0, True
        for title, options in (("second run", []), ("dry run", ["-n"])):
            mine = cpu_s(partial(desk.run, "all", *options))
            theirs = cpu_s(partial(run_trivial, *options))
            said = (ours / f"run{desk.runs}.txt").read_text()
            idle = idle and "Nothing to be done" in said
            print(f"{title}: {mine:.1f} s, trivial {theirs:.1f} s, ratio {mine / theirs:.2f}")
            worst = max(worst, mine / theirs)
        records = [len(list((f / ".snakemake" / "metadata").iterdir())) for f in (ours, trivial)]
    print(f"Snakemake's records: {records[0]}, trivial {records[1]}")
    print(f"{args.samples} samples, {args.models} models; {'no' if idle else 'A'} job was started")
    return int(not idle or worst > MOST)


def _finished_desk(folder: Path, samples: list[str], models: list[str]) -> Desk:
    """One sample is computed; the others get copies of its files under their own names."""
    desk = Desk(folder)
    desk.config = {"pilot_n": 1}
    desk.add_samples(samples, pictures=16)
    for model in models:
        desk.add_model(model, speak=False)
    desk.run(f"results/{models[0]}/{samples[0]}/result.json")
    made = folder / "work" / models[0] / "store" / samples[0]
    provenance = json.loads((made / "provenance.json").read_text())
    shutil.copytree(made, folder / "made")
    shutil.rmtree(folder / "results")
    for model in models:
        shutil.rmtree(folder / "work" / model, ignore_errors=True)
        _fill_store(folder, provenance, samples, desk.models[model], model)
    verdict = (folder / "work" / "checks" / f"{samples[0]}.json").read_text()
    for sample in samples:
        (folder / "work" / "checks" / f"{sample}.json").write_text(
            verdict.replace(f'"{samples[0]}"', f'"{sample}"')
        )
    with contextlib.chdir(folder):
        _write_tickets(desk, models, samples)
    desk.start("all", "--touch").end(timeout_s=3600)
    return desk


def _fill_store(
    folder: Path, provenance: dict, samples: list[str], entry: dict, model: str
) -> None:
    """A finished entry in the store and a published copy for every sample."""
    recipe = Recipe(entry["module"], entry["settings"], 0, {})
    inputs = provenance["input"]["video_sha256"], provenance["input"]["adapter_sha256"]
    made = folder / "made"
    for sample in samples:
        target = folder / "work" / model / "store" / sample
        shutil.copytree(made, target)
        result = json.loads((made / "result.json").read_text())
        result |= {"sample_id": sample, "model": model}
        (target / "result.json").write_text(json.dumps(result))
        own = provenance | {
            "sample_id": sample,
            "fingerprint": recipe.fingerprint(*inputs),
            "result": {"sha256": sha256_file(target / "result.json")},
        }
        (target / "provenance.json").write_text(json.dumps(own, indent=2))
        shutil.copytree(target, folder / "results" / model / sample)


def _write_tickets(desk: Desk, models: list[str], samples: list[str]) -> None:
    """The plan that a run would make, and the tickets of its shards; in the desk's folder."""
    config = {**desk.config, "models": {name: dict(desk.models[name]) for name in models}}
    schemas = ROOT / "workflow" / "schemas"
    SchemaFile(schemas / "config.schema.yaml").fill(config, "config.yaml")
    for name, entry in config["models"].items():
        SchemaFile(schemas / "models.schema.yaml").fill(entry, "models.yaml", name)
    schedule = Schedule(config, Path(), plan_anew=True)
    tickets = {schedule.ticket(model, sample) for model in models for sample in samples}
    schedule.save(models)
    for ticket in map(Path, tickets):
        ticket.parent.mkdir(parents=True, exist_ok=True)
        ticket.write_text('{"samples": {}}')


def _trivial(folder: Path, samples: list[str], models: list[str]) -> Callable[..., object]:
    """A finished trivial workflow; returns what runs it again."""
    outputs = ", ".join(f'"results/{{model}}/{{sample}}/{name}"' for name in FILES)
    text = TRIVIAL.format(samples=samples, models=models, shards=SHARDS, outputs=outputs)
    (folder / "Snakefile").write_text(text)
    (folder / "tickets").mkdir()
    for model in models:
        for shard in range(SHARDS):
            (folder / "tickets" / f"{model}.{shard}").write_text("done")
    command = [sys.executable, "-m", "snakemake", "--cores", "2"]

    def run(*options: str) -> None:
        done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    for model in models:
        for sample in samples:
            target = folder / "results" / model / sample
            target.mkdir(parents=True)
            for name in FILES:
                (target / name).write_text("done")
    # Forced, because without records of its last run Snakemake has less to look at than it has in
    # any workflow that was ever run.
    run("--touch", "--forceall")
    return run


def cpu_s(work: Callable[[], object]) -> float:
    """Seconds of processor time that a child process takes; the machine may be busy."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
