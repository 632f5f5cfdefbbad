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

SCRIPTS = REPOSITORY / "scripts"
sys.path.insert(0, str(SCRIPTS))
os.environ |= {"HFD_PYTHON": sys.executable, "HFD_SCRIPTS": str(SCRIPTS)}

from hfd.errors import HfdError
from hfd.jobs.advice import check_resources
from hfd.jobs import runlock
from hfd.jobs.console import Starts, add_checks, program, quiet_after_ctrl_c
from hfd.jobs.future import leave_the_future
from hfd.jobs.schedule import Schedule
from hfd.jobs.schema import SchemaFile
from hfd.jobs.spec import CONFIG_VARIABLE
from hfd.jobs.witness import witness_folder

MODELS_FILE = next(
    (Path(path) for path in reversed(workflow.configfiles) if Path(path).name == "models.yaml"),
    REPOSITORY / "config" / "models.yaml",
)


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
        method = plain_errors(getattr(self._inner, name))
        setattr(self, name, method)  # thousands of files ask for the same one
        return method


@plain_errors
def check_config():
    """Check the configuration against its schemas and fill in their defaults."""
    schemas = REPOSITORY / "workflow" / "schemas"
    SchemaFile(schemas / "config.schema.yaml").fill(config, "config/config.yaml")
    witness_folder(config)
    models = SchemaFile(schemas / "models.schema.yaml")
    for name, entry in config["models"].items():
        models.fill(entry, "config/models.yaml", "models", name)
        check_resources(name, entry["resources"])
        entry["module_path"] = entry["module_path"] or MODELS_FILE.parent.as_posix()


check_config()

# Scripts read the configuration from here, not from their command line: what is secret in it then
# reaches no log and none of Snakemake's records. Jobs on other nodes parse this file, too.
os.environ[CONFIG_VARIABLE] = json.dumps(config)

SCHEDULE = PlainErrors(plain_errors(Schedule)(config, Path(), plan_anew=workflow.is_main_process))

MODELS = config["models"]
LIGHT_HERE = config["light_jobs"] == "here"
STARTS = Starts(SCRIPTS)
IN_ALL = [name for name, entry in MODELS.items() if entry["in_all"]]


wildcard_constraints:
    model="|".join(MODELS),
    sample="[^/]+",
    shard="[^/]+",


def result_files(model, ids):
    """What stands for a published sample: the file that is written last."""
    return [f"results/{model}/{sample}/result.json" for sample in ids]


def shard_inputs(model):
    """The verdicts on a shard's samples; its videos are theirs to judge."""

    def inputs(wildcards):
        members = SCHEDULE.members(model, wildcards.shard)
        return [f"work/checks/{sample.sample_id}.json" for sample in members]

    return inputs


def preflight_of(model):
    """What says that a model can start: one look for all shards of a run, none on their nodes."""

    def inputs(wildcards):
        if not workflow.is_main_process:
            return []
        if not uses_conda():
            plain_errors(program)(model, interpreter(model))
            if workflow.dryrun:
                STARTS.begin(model, interpreter(model))
        return f"work/{model}/preflight/g{SCHEDULE.generation(model)}-{os.getpid()}.json"

    return inputs


def preflight_options(model):
    """How many cards it needs, who gives them, and the environment file to compare with."""
    scheduled = [] if workflow.local_exec else ["--scheduled"]
    file = [f"--environment={path}" for path in [environment(model)] if path]
    return [f"--gpus={MODELS[model]['resources']['gpu']}", *file, *scheduled]


def open_shard(model):
    """The names of shards that may be run: any but those that have a ticket.

    A finished shard is then a file like any other, which nothing makes and nothing makes stale:
    what has to be done anew is planned into a new shard, and no other sample is touched.
    """
    ended = "|".join(SCHEDULE.ended(model))
    return rf"(?!(?:{ended})\.ticket)g\d+-[0-9a-f]{{8}}-" if ended else r"g\d+-[0-9a-f]{8}-"


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
    path = REPOSITORY / "envs" / f"{MODELS[model]['env'] or MODELS[model]['module']}.yaml"
    return str(path) if path.exists() or MODELS[model]["env"] else None


def uses_conda():
    return "conda" in map(str, workflow.deployment_settings.deployment_method)


def interpreter(model):
    """The Python of a model's worker."""
    return MODELS[model]["python"] or ("python" if uses_conda() else "$HFD_PYTHON")


if workflow.is_main_process:
    INTERRUPTED = quiet_after_ctrl_c()
    runlock.announce_run(Path())
    runlock.tell(runlock.clear_stale_lock(Path()))
    for line in SCHEDULE.doubts():
        runlock.tell(f"{config['manifest']}, {line}")


STARTED = []  # holds something once jobs were started
WORKING_FOLDER = Path.cwd()  # with --directory, Snakemake has left it at its end


@atexit.register
def tell_what_is_missing():
    """Every run ends with the table of what exists and what is missing, also one that failed."""
    if workflow.is_main_process and INTERRUPTED:
        runlock.tell("stopped by Ctrl-C; what is finished stays, the same command goes on from it")
    if not workflow.is_main_process:
        return
    os.chdir(WORKING_FOLDER)
    if INTERRUPTED:
        runlock.tell("stopped by Ctrl-C; what is finished stays, the same command goes on from it")
    if SCHEDULE.models_seen():
        print(SCHEDULE.table(anew=bool(STARTED)), file=sys.stderr)
        if not workflow.dryrun:
            SCHEDULE.save_hashes()


onstart:
    if workflow.is_main_process:
        STARTED.append(True)
        jobs = list(workflow.dag.needrun_jobs())
        SCHEDULE.save({job.wildcards.get("model", job.params.get("model")) for job in jobs})
        if plain_errors(leave_the_future)(
            Path(str(path)) for job in jobs for path in job.input
        ):
            runlock.tell("inputs were dated in the future (clock set back?); they are of now")
