"""Which files data.smk reads: raw rows, what is compiled of them, what is checked."""

import json
from functools import cache

from hfd.data.raw import compiled_folder, read_raw

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


def checked_files(wildcards):
    """Video and adapter of a sample; it may have no adapter."""
    sample = SCHEDULE.sample(wildcards.sample)
    adapter = {"adapter": str(sample.adapter)} if sample.adapter else {}
    deny_list = {"deny_list": config["check"]["deny_list"]} if config["check"]["deny_list"] else {}
    return {"video": str(sample.video)} | adapter | deny_list


def check_options(wildcards, input):
    """What the check is given of a sample, from its manifest row."""
    sample = SCHEDULE.sample(wildcards.sample)
    adapter = [f"--adapter={input.adapter}"] if sample.adapter else []
    deny_list = [f"--deny-list={input.deny_list}"] if config["check"]["deny_list"] else []
    return [f"--task={sample.task}", f"--duration={sample.duration_seconds}", *adapter, *deny_list]
