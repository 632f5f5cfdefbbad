# HFD-1024 through full-duplex models: samples in, verifiable results out.
#
#   data/manifest.jsonl ──> work/checks/<id>.json            check_sample      workflow/rules/data.smk
#   data/raw/ ──> data/videos/, data/adapters/, manifest     compile_hesitation
#   samples of a shard ──> work/<model>/store/<id>/          infer_<model>     workflow/rules/inference.smk
#   a sample's store entry ──> results/<model>/<id>/         publish
#   results/ ──> results/audit/                              audit_<model>     workflow/rules/audit.smk
#
# Everything is run from the repository root; paths in rules are relative to it. Scripts of the
# rules also work by hand: python scripts/<name>.py --help

from snakemake.utils import min_version

min_version("9.0")


include: "workflow/rules/config_files.smk"


if HOLDS_KEYS.get("config/config.yaml", True):  # all of its keys have defaults

    configfile: "config/config.yaml"


if HOLDS_KEYS.get("config/models.yaml", True):

    configfile: "config/models.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data_inputs.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/inference.smk"
include: "workflow/rules/audit_inputs.smk"
include: "workflow/rules/audit.smk"


if config["demo"]:  # config/demo.yaml

    include: "workflow/rules/demo.smk"


rule all:
    default_target: True
    input:
        lambda wildcards: [path for model in IN_ALL for path in result_files(model, SCHEDULE.ids())],
    localrule: True
    params:
        models=", ".join(IN_ALL),
    message:
        "every result of {params.models}"


if workflow.is_main_process:
    add_checks(workflow, STARTS)
