# From published results to a verdict: metrics, rules, report.
#
# The audit of `audit` and `audit_<model>` waits for every result; `audit_now` judges what is there,
# with what is missing counted as missing.


def audit_options(wildcards=None):
    """Optional inputs of the audit, as command-line options, if they exist."""
    found = {
        "--deny": config.get("deny_list"),
        "--transcripts": "work/audit/transcripts.jsonl",
        "--probes": "work/audit/probes",
    }
    return " ".join(f"{key} {path}" for key, path in found.items() if path and Path(path).exists())


AUDIT_COMMAND = (
    '"$HFD_PYTHON" "$HFD_SCRIPTS"/audit.py --manifest {params.manifest:q} --work work'
    " --checks work/checks --models-file {params.models_file:q} --cache work/audit/players"
    " --jobs {threads} {params.options} --models {params.models:q}"
)


rule audit:
    input:
        lambda wildcards: [path for model in IN_ALL for path in result_files(model, BOARD.ids())],
    output:
        report(
            directory("results/audit"),
            htmlindex="index.html",
            caption="../report/audit.rst",
            category="Audit",
            labels={"page": "all models"},
        ),
    log:
        "logs/audit.log",
    threads: 2
    params:
        manifest=config["manifest"],
        models_file=f"{workflow.basedir}/config/models.yaml",
        models=IN_ALL,
        options=audit_options,
    message:
        "audit of all models"
    shell:
        AUDIT_COMMAND + " --out {output:q} 2>&1 | tee {log:q}"


rule audit_now:
    threads: 2
    params:
        manifest=config["manifest"],
        models_file=f"{workflow.basedir}/config/models.yaml",
        models=list(MODELS),
        options=audit_options,
    message:
        "audit of what there is"
    shell:
        AUDIT_COMMAND + " --out results/audit"


for name in MODELS:

    rule:
        name:
            f"audit_{name}"
        input:
            lambda wildcards, model=name: result_files(model, BOARD.ids()),
        output:
            report(
                directory(f"results/audit_{name}"),
                htmlindex="index.html",
                caption="../report/audit.rst",
                category="Audit",
                labels={"page": name},
            ),
        log:
            f"logs/audit_{name}.log",
        threads: 2
        params:
            manifest=config["manifest"],
            models_file=f"{workflow.basedir}/config/models.yaml",
            models=[name],
            options=audit_options,
        message:
            f"audit of {name}"
        shell:
            AUDIT_COMMAND + " --out {output:q} 2>&1 | tee {log:q}"
