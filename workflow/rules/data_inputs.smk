"""Which files data.smk reads: raw rows, what is compiled of them, what is checked."""

import json
from functools import cache

from hfd.data.deny_list import read_deny_list
from hfd.data.raw import compiled_folder, read_raw

DENY_LIST = config["check"]["deny_list"]
# Read at every start: a list that is not there must not be ignored because checks exist.
DENIED = sorted(plain_errors(read_deny_list)(Path(DENY_LIST))) if DENY_LIST else []
RAW = config["raw"]
RAW_OPTIONS = f"--raw={RAW['manifest']}", f"--fields={json.dumps(RAW['fields'])}"


@cache
@plain_errors
def raw_samples():
    """The raw rows by id."""
    rows = read_raw(RAW["manifest"], Path(), RAW["fields"], check_files=False)
    return {row.sample_id: row for row in rows}


def compiled_files(wildcards):
    """Video and adapter of every raw row, by recipe."""
    folders = [compiled_folder(Path("work/compiled"), row) for row in raw_samples().values()]
    return [str(f / name) for f in folders for name in ("video.mp4", "adapter.json")]


def check_inputs(wildcards):
    """What is there of a sample's video and adapter, and the list of videos not to be used."""
    return SCHEDULE.checked_files(wildcards.sample) + ([DENY_LIST] if DENY_LIST else [])


def check_options(wildcards):
    """What the check is given of a sample, from its manifest row."""
    sample = SCHEDULE.sample(wildcards.sample)
    adapter = [f"--adapter={sample.adapter}"] if sample.adapter else []
    deny_list = [f"--deny-list={DENY_LIST}"] if DENY_LIST else []
    return [
        f"--video={sample.video}",
        f"--task={sample.task}",
        f"--duration={sample.duration_seconds}",
        *adapter,
        *deny_list,
    ]
