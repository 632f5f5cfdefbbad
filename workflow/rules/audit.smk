# From published results to a verdict: metrics, rules, report.
#
# The audit of `audit` and `audit_<model>` waits for every result; `audit_now` judges what is there,
# with what is missing counted as missing, and writes to results/audit_now, which nothing waits for.


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
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    threads: 2
    params:
        manifest=config["manifest"],
        models_file=AUDIT_MODELS_FILE,
        models=IN_ALL,
        options=audit_options,
    message:
        "audit of all models"
    shell:
        f"{AUDIT_COMMAND} --out {{output:q}} 2>&1 | tee {{log:q}}"


rule audit_now:
    log:
        "logs/audit_now.log",
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    threads: 2
    params:
        manifest=config["manifest"],
        models_file=AUDIT_MODELS_FILE,
        models=list(MODELS),
        options=audit_options,
    message:
        "audit of what there is"
    shell:
        f"{AUDIT_COMMAND} --out results/audit_now 2>&1 | tee {{log:q}}"


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
        localrule: LIGHT_HERE
        conda:
            "../../envs/workflow.yaml"
        threads: 2
        params:
            manifest=config["manifest"],
            models_file=AUDIT_MODELS_FILE,
            models=[name],
            options=audit_options,
        message:
            f"audit of {name}"
        shell:
            f"{AUDIT_COMMAND} --out {{output:q}} 2>&1 | tee {{log:q}}"
