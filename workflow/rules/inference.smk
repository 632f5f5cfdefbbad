# From compiled samples to published results.
#
# A shard's job loads its model once and puts every finished sample into the model's private store
# at once; its declared output is only a ticket, so that nothing finished is ever lost with it.

PREFLIGHT = (
    '"{params.python}" "$HFD_SCRIPTS"/preflight.py --model {params.model} {params.options:q}'
)
RETRIES = 2 if workflow.is_main_process else 0  # a cluster job must not retry within itself

for name, entry in MODELS.items():

    rule:
        name:
            f"infer_{name}"
        input:
            shard_inputs(name),
            preflight_of(name),
        output:
            f"work/{name}/shards/{{shard}}.ticket",
        log:
            f"logs/{name}/infer/{{shard}}.log",
        wildcard_constraints:
            shard=open_shard(name) + r"\d+",
        retries: RETRIES
        conda:
            environment(name)
        threads: entry["resources"]["cpus"]
        resources:
            **job_resources(name),
        params:
            model=name,
            python=interpreter(name),
            manifest=config["manifest"],
            gpus=entry["resources"]["gpu"],
        message:
            f"{name}: shard {{wildcards.shard}}"
        shell:
            '"{params.python}" "$HFD_SCRIPTS"/infer.py --model {params.model}'
            " --shard {wildcards.shard} --manifest {params.manifest:q} --gpus {params.gpus}"
            " --log {log:q}"

    # Once for every run, before its first job waits for a card.
    rule:
        name:
            f"start_{name}"
        output:
            temp(f"work/{name}/preflight/{{run}}.json"),
        log:
            f"logs/{name}/preflight/{{run}}.log",
        wildcard_constraints:
            run=r"g\d+-\d+",
        localrule: True
        conda:
            environment(name)
        params:
            model=name,
            python=interpreter(name),
            options=lambda wildcards, model=name: preflight_options(model),
        message:
            f"{name}: can it start?"
        shell:
            f"{PREFLIGHT} --out {{output:q}} > {{log:q}} 2>&1"

    rule:
        name:
            f"preflight_{name}"
        log:
            f"logs/{name}/preflight.log",
        localrule: True
        conda:
            environment(name)
        params:
            model=name,
            python=interpreter(name),
            options=lambda wildcards, model=name: preflight_options(model),
        message:
            f"{name}: can it start?"
        shell:
            f"{PREFLIGHT} 2>&1 | tee {{log:q}}"

    # All samples of the shard are finished: no model and no card is needed.
    rule:
        name:
            f"reuse_store_{name}"
        output:
            f"work/{name}/shards/{{shard}}.ticket",
        log:
            f"logs/{name}/infer/{{shard}}.log",
        wildcard_constraints:
            shard=open_shard(name) + "store",
        localrule: True
        conda:
            "../../envs/workflow.yaml"
        params:
            model=name,
            manifest=config["manifest"],
        message:
            f"{name}: nothing to compute in {{wildcards.shard}}"
        shell:
            '"$HFD_PYTHON" "$HFD_SCRIPTS"/infer.py --model {params.model}'
            " --shard {wildcards.shard} --manifest {params.manifest:q} --log {log:q}"

    rule:
        name:
            f"results_{name}"
        input:
            lambda wildcards, model=name: result_files(model, SCHEDULE.ids()),
        localrule: True
        message:
            f"{name}: every sample has its result"

    rule:
        name:
            f"pilot_{name}"
        input:
            lambda wildcards, model=name: result_files(model, SCHEDULE.pilot_ids()),
        log:
            f"logs/{name}/pilot.log",
        localrule: True
        conda:
            "../../envs/workflow.yaml"
        params:
            folders=lambda wildcards, model=name: [
                f"results/{model}/{sample}" for sample in SCHEDULE.pilot_ids()
            ],
            manifest=config["manifest"],
            voice_origin=entry["voice_origin"],
        message:
            f"{name}: validate the pilot's results"
        shell:
            'for folder in {params.folders:q}; do echo "$folder"; "$HFD_PYTHON" "$HFD_SCRIPTS"/verify_results.py'
            ' "./$folder" --manifest {params.manifest:q} --voice-origin {params.voice_origin};'
            " done 2>&1 | tee {log:q}"


rule publish:
    input:
        lambda wildcards: SCHEDULE.ticket(wildcards.model, wildcards.sample),
    output:
        "results/{model}/{sample}/assistant_audio.wav",
        "results/{model}/{sample}/trace.jsonl.gz",
        "results/{model}/{sample}/provenance.json",
        "results/{model}/{sample}/result.json",
    log:
        "logs/{model}/publish/{sample}.log",
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    message:
        "{wildcards.model}: {wildcards.sample}"
    shell:
        '"$HFD_PYTHON" -ES "$HFD_SCRIPTS"/publish.py --model={wildcards.model}'
        " --sample={wildcards.sample:q} --ticket={input:q} 2> {log:q}"


rule missing:
    log:
        "logs/missing.txt",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    message:
        "what is missing, and why"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/missing.py | tee {log:q}'
