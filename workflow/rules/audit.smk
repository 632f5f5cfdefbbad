# From published results to a verdict: metrics, rules, report.
#
# The audit of `audit` and `audit_<model>` waits for every result; `audit_now` judges what is there,
# with what is missing counted as missing, and writes to results/audit_now, which nothing waits for;
# of the models that have results, or of those in config: audit.models.


rule audit:
    input:
        audit_inputs(IN_ALL),
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
        models_file=str(MODELS_FILE),
        models=IN_ALL,
        options=audit_options,
        evidence=lambda wildcards: evidence_there(IN_ALL),
        denied=DENIED,
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
        models_file=str(MODELS_FILE),
        models=models_now(),
        options=audit_options,
    message:
        "audit of what there is"
    shell:
        f"{AUDIT_COMMAND} --out results/audit_now 2>&1 | tee {{log:q}}"


# Two folders of results against each other: --config first=results/old second=results/new. No output:
# the command is always obeyed.
rule compare:
    log:
        "logs/compare.log",
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    threads: 2
    params:
        first=config["first"],
        second=config["second"],
        manifest=config["manifest"],
        primary=config["audit"]["primary"],
    message:
        "{params.first} against {params.second}"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/compare.py --first={params.first:q} --second={params.second:q}'
        " --manifest {params.manifest:q} --checks work/checks --cache work/audit/players"
        " --primary {params.primary} --jobs {threads} --out results/compare 2>&1 | tee {log:q}"


# Blind clips for two people: --config 'audit={nonce: WORD, models: [NAMES]}'. No output: the
# command is always obeyed, and a sheet of another nonce is another file.
rule label_sheet:
    log:
        "logs/label_sheet.log",
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    params:
        manifest=config["manifest"],
        models=models_now(),
        nonce=config["audit"]["nonce"],
        out=config["audit"]["labels"],
    message:
        "label sheet of {params.models}"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/label_sheet.py --manifest {params.manifest:q}'
        " --models {params.models:q} --nonce={params.nonce:q} --out {params.out:q} 2>&1 | tee {log:q}"


for name, entry in MODELS.items():

    rule:
        name:
            f"audit_{name}"
        input:
            audit_inputs([name]),
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
            models_file=str(MODELS_FILE),
            models=[name],
            options=audit_options,
            evidence=lambda wildcards, model=name: evidence_there([model]),
            denied=DENIED,
        message:
            f"audit of {name}"
        shell:
            f"{AUDIT_COMMAND} --out {{output:q}} 2>&1 | tee {{log:q}}"

    rule:
        name:
            f"render_{name}"
        input:
            lambda wildcards, model=name: result_files(model, SCHEDULE.ids()),
        output:
            directory(f"results/render/{name}"),
        log:
            f"logs/render_{name}.log",
        localrule: LIGHT_HERE
        conda:
            "../../envs/workflow.yaml"
        params:
            model=name,
            manifest=config["manifest"],
        message:
            f"{name}: watchable videos"
        shell:
            '"$HFD_PYTHON" "$HFD_SCRIPTS"/render.py --model {params.model}'
            " --manifest {params.manifest:q} --out {output:q} 2>&1 | tee {log:q}"

    rule:
        name:
            f"deliver_{name}"
        input:
            results=lambda wildcards, model=name: result_files(model, SCHEDULE.ids()),
            audit=f"results/audit_{name}",
        output:
            f"results/delivery/results_{name}.tar.gz",
        log:
            f"logs/deliver_{name}.log",
        localrule: LIGHT_HERE
        conda:
            "../../envs/workflow.yaml"
        params:
            model=name,
            environment=[path for path in [environment(name)] if path],
        message:
            f"{name}: delivery"
        shell:
            '"$HFD_PYTHON" "$HFD_SCRIPTS"/deliver.py --model {params.model}'
            " --audit {input.audit:q} --out results/delivery"
            " --environment {params.environment:q} 2>&1 | tee {log:q}"

    rule:
        name:
            f"transcripts_{name}"
        input:
            lambda wildcards, model=name: result_files(model, SCHEDULE.ids()),
        output:
            f"work/audit/transcripts/{name}.jsonl",
        log:
            f"logs/transcripts_{name}.log",
        localrule: LIGHT_HERE
        conda:
            "../../envs/cascade.yaml"
        params:
            python=listener(),
            model=name,
            manifest=config["manifest"],
        message:
            f"{name}: what a recogniser hears"
        shell:
            '"{params.python}" "$HFD_SCRIPTS"/transcripts.py --manifest {params.manifest:q}'
            " --models {params.model} --out {output:q} 2>&1 | tee {log:q}"


for name, entry in MODELS.items():
    for kind, question in PROBES.items():

        rule:
            name:
                f"{kind}_probe_{name}"
            input:
                manifest=config["manifest"],
                results=probed_results(name),
            output:
                f"work/audit/probes/{kind}/{name}.json",
            log:
                f"logs/{kind}_probe_{name}.log",
            conda:
                environment(name)
            threads: entry["resources"]["cpus"]
            resources:
                **{"runtime": 60}
                | {key: n for key, n in entry["resources"].items() if key != "cpus" and n},
            params:
                python=interpreter(name),
                model=name,
                kind=kind,
                options=probe_options(name),
                scratch=f"work/audit/probe/{kind}/{name}",
            message:
                f"{name}: {question}"
            shell:
                '"{params.python}" "$HFD_SCRIPTS"/probe.py {params.kind} --model {params.model}'
                " --manifest {input.manifest:q} {params.options:q} --scratch {params.scratch:q}"
                " --out {output:q} 2>&1"
                " | tee {log:q}"


# Words and colours that are drawn from audit.nonce, to be remembered and asked for late.
rule canary_media:
    output:
        directory("work/audit/canary/media"),
    log:
        "logs/canary_media.log",
    localrule: LIGHT_HERE
    conda:
        "../../envs/cascade.yaml"
    params:
        python=listener(),
        nonce=config["audit"]["nonce"],
    message:
        "canaries of the nonce {params.nonce}"
    shell:
        '"{params.python}" "$HFD_SCRIPTS"/canary_media.py --nonce={params.nonce:q} --out {output:q}'
        " 2>&1 | tee {log:q}"


for name, entry in MODELS.items():

    rule:
        name:
            f"canary_{name}"
        input:
            "work/audit/canary/media",
        output:
            f"work/audit/probes/canary/{name}.json",
        log:
            f"logs/canary_{name}.log",
        conda:
            environment(name)
        threads: entry["resources"]["cpus"]
        resources:
            **{"runtime": 60}
            | {key: n for key, n in entry["resources"].items() if key != "cpus" and n},
        params:
            python=interpreter(name),
            model=name,
            nonce=config["audit"]["nonce"],
            scratch=f"work/audit/probe/canary/{name}",
        message:
            f"{name}: does it still know what it heard and saw?"
        shell:
            '"{params.python}" "$HFD_SCRIPTS"/canary.py --model {params.model} --media {input:q}'
            " --nonce={params.nonce:q} --scratch {params.scratch:q} --out {output:q} 2>&1"
            " | tee {log:q}"
