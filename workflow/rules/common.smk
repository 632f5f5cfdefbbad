"""What all rules share: the checked configuration, the samples, and each model's plan.

Rules start scripts as  "$HFD_PYTHON" "$HFD_SCRIPTS"/<name>.py : the interpreter that runs Snakemake
and this repository's scripts. Both are environment variables, not parameters, so that another
virtual environment or a moved checkout makes nothing run again.
"""

import atexit
import functools
import json
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

SCRIPTS = Path(workflow.basedir) / "scripts"
sys.path.insert(0, str(SCRIPTS))
os.environ |= {"HFD_PYTHON": sys.executable, "HFD_SCRIPTS": str(SCRIPTS)}

from hfd.errors import HfdError
from hfd.jobs import runlock
from hfd.jobs.schedule import Schedule
from hfd.jobs.future import leave_the_future


def plain_errors(function):
    """`function`, but an error that the user can mend ends Snakemake with that one line.

    SystemExit, because to any exception of an input function Snakemake adds a traceback.
    """

    @functools.wraps(function)
    def call(*args, **options):
        try:
            return function(*args, **options)
        except HfdError as error:
            sys.exit(f"error: {error}")

    return call


class PlainErrors:
    """An object whose every method is `plain_errors`."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return plain_errors(getattr(self._inner, name))


@plain_errors
def check(settings, schema, file, *place):
    """Check settings against a schema and fill in its defaults."""
    try:
        validate(settings, f"../schemas/{schema}.schema.yaml")
    except WorkflowError as error:
        found = error.__context__  # what the schema says, without the schema
        field = ".".join(map(str, (*place, *found.absolute_path)))
        raise HfdError(found.message, file=file, field=field, remedy="See config/README.md")


check(config, "config", "config/config.yaml")
for name, entry in config["models"].items():
    check(entry, "models", "config/models.yaml", "models", name)

SCHEDULE = PlainErrors(plain_errors(Schedule)(config, Path(), plan_anew=workflow.is_main_process))

MODELS = config["models"]
LIGHT_HERE = config["light_jobs"] == "here"
IN_ALL = [name for name, entry in MODELS.items() if entry["in_all"]]


wildcard_constraints:
    model="|".join(MODELS),
    sample="[^/]+",
    shard="[^/]+",


def result_files(model, ids):
    """What stands for a published sample: the file that is written last."""
    return [f"results/{model}/{sample}/result.json" for sample in ids]


def shard_inputs(model):
    """The compiled files of a shard's samples, and the verdicts on them."""

    def inputs(wildcards):
        members = SCHEDULE.members(model, wildcards.shard)
        files = [str(p) for sample in members for p in (sample.video, sample.adapter) if p]
        return files + [f"work/checks/{sample.sample_id}.json" for sample in members]

    return inputs


def job_resources(model):
    """A model's resources as a scheduler wants them; a retry gets more time."""
    wanted = MODELS[model]["resources"]
    given = {name: value for name, value in wanted.items() if name != "cpus" and value != 0}
    return given | {
        "cpus_per_task": wanted["cpus"],
        "runtime": lambda wildcards, attempt: SCHEDULE.minutes(model, wildcards.shard) * attempt,
    }


def environment(model):
    """A model's conda environment, used under --sdm conda; a model from elsewhere has none."""
    path = SCRIPTS.parent / "envs" / f"{MODELS[model]['env'] or MODELS[model]['module']}.yaml"
    return str(path) if path.exists() or MODELS[model]["env"] else None


def interpreter(model):
    """The Python of a model's worker."""
    by_conda = "conda" in map(str, workflow.deployment_settings.deployment_method)
    return MODELS[model]["python"] or ("python" if by_conda else "$HFD_PYTHON")


if workflow.is_main_process:
    runlock.announce_run(Path())
    runlock.tell(runlock.clear_stale_lock(Path()))


@atexit.register
def tell_what_is_missing():
    """A dry run ends with the table of what exists and what is missing."""
    if workflow.is_main_process and workflow.dryrun:
        print(SCHEDULE.table(), file=sys.stderr)


onstart:
    if workflow.is_main_process:
        jobs = list(workflow.dag.needrun_jobs())
        SCHEDULE.save_plans({job.params.get("model") for job in jobs} - {None})
        if plain_errors(leave_the_future)(
            Path(str(path)) for job in jobs for path in job.input
        ):
            runlock.tell("inputs were dated in the future (clock set back?); they are of now")
