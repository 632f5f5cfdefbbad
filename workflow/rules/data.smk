# Data: raw hesitation rows are compiled, put into data/, and every sample is checked.
#
# Delivered data sets need none of the raw part: without data/raw/ only the checks run.
# A compiled sample lies in work/compiled/<id>/<recipe>/; the recipe is a hash of its raw row and
# of the compiler's version, so whatever changes a video changes its name, and Snakemake compiles
# exactly what is missing. Nothing under data/ changes until `snakemake regenerate_hesitation`.

import json
from functools import cache

from hfd.data.raw import read_raw
from hfd.data.regenerate import compiled_folder


RAW = config["raw"]
RAW_OPTIONS = f"--raw={RAW['manifest']}", f"--fields={json.dumps(RAW['fields'])}"


@cache
def raw_samples():
    """The raw rows by id."""
    try:
        rows = read_raw(RAW["manifest"], Path(), RAW["fields"], check_files=False)
    except HfdError as error:
        raise WorkflowError(str(error))
    return {row.sample_id: row for row in rows}


def compiled_files(wildcards):
    """Video and adapter of every raw row, by recipe."""
    folders = [compiled_folder(Path("work/compiled"), row) for row in raw_samples().values()]
    return [str(f / name) for f in folders for name in ("video.mp4", "adapter.json")]


rule compile_hesitation:
    input:
        video=lambda wildcards: str(raw_samples()[wildcards.sample].video),
        audio=lambda wildcards: [str(e.audio) for e in raw_samples()[wildcards.sample].events],
    output:
        video="work/compiled/{sample}/{recipe}/video.mp4",
        adapter="work/compiled/{sample}/{recipe}/adapter.json",
    params:
        raw=RAW_OPTIONS,
        full_first_question=RAW["full_first_question"],
    log:
        "logs/compile_hesitation/{sample}.{recipe}.log",
    wildcard_constraints:
        recipe="[0-9a-f]+",
    message:
        "compile {wildcards.sample}"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=15,
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/compile_hesitation.py {params.raw:q}'
        " --sample-id={wildcards.sample:q} --recipe={wildcards.recipe}"
        " --full-first-question={params.full_first_question}"
        " --video={output.video:q} --adapter={output.adapter:q} > {log:q} 2>&1"


# No output: the command is always obeyed, and changes only what differs.
rule regenerate_hesitation:
    input:
        compiled_files,
    params:
        raw=RAW_OPTIONS,
        manifest=config["manifest"],
    log:
        "logs/regenerate_hesitation.log",
    localrule: True
    message:
        "put the compiled hesitation samples into {params.manifest} and its folders"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/regenerate_manifest.py {params.raw:q}'
        " --manifest={params.manifest:q} --compiled=work/compiled 2>&1 | tee {log:q}"


def checked_files(wildcards):
    """Video and adapter of a sample; it may have no adapter."""
    sample = BOARD.sample(wildcards.sample)
    adapter = {"adapter": str(sample.adapter)} if sample.adapter else {}
    deny_list = {"deny_list": config["check"]["deny_list"]} if config["check"]["deny_list"] else {}
    return {"video": str(sample.video)} | adapter | deny_list


def check_options(wildcards, input):
    """What the check is told of a sample, from its manifest row."""
    sample = BOARD.sample(wildcards.sample)
    adapter = [f"--adapter={input.adapter}"] if sample.adapter else []
    deny_list = [f"--deny-list={input.deny_list}"] if config["check"]["deny_list"] else []
    return [f"--task={sample.task}", f"--duration={sample.duration_seconds}", *adapter, *deny_list]


rule check_sample:
    input:
        unpack(checked_files),
    output:
        "work/checks/{sample}.json",
    params:
        options=check_options,
    log:
        "logs/check_sample/{sample}.log",
    message:
        "check {wildcards.sample}"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/check_sample.py --sample-id={wildcards.sample:q}'
        " --video={input.video:q} {params.options:q} --output={output:q} > {log:q} 2>&1"


# No output: it fails if a sample does, and its table has to survive that.
rule check_data:
    input:
        lambda wildcards: [f"work/checks/{sample}.json" for sample in BOARD.ids()],
    params:
        manifest=config["manifest"],
    log:
        "logs/check_data.log",
    localrule: True
    message:
        "gather the checks of every sample into results/check_data.csv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/check_data.py --manifest={params.manifest:q}'
        " --checks=work/checks --table=results/check_data.csv 2>&1 | tee {log:q}"
