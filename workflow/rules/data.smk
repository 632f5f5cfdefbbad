# Data: raw hesitation rows are compiled, put into data/, and every sample is checked.
#
# Delivered data sets need none of the raw part: without data/raw/ only the checks run.
# A compiled sample lies in work/compiled/<id>/<recipe>/; the recipe is a hash of its raw row and
# of the compiler's version, so whatever changes a video changes its name, and Snakemake compiles
# exactly what is missing. Nothing under data/ changes until `snakemake regenerate_hesitation`.


rule compile_hesitation:
    input:
        video=lambda wildcards: str(raw_samples()[wildcards.sample].video),
        audio=lambda wildcards: [str(e.audio) for e in raw_samples()[wildcards.sample].events],
    output:
        video="work/compiled/{sample}/{recipe}/video.mp4",
        adapter="work/compiled/{sample}/{recipe}/adapter.json",
    log:
        "logs/compile_hesitation/{sample}.{recipe}.log",
    wildcard_constraints:
        recipe="[0-9a-f]+",
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        raw=RAW_OPTIONS,
        full_first_question=RAW["full_first_question"],
    message:
        "compile {wildcards.sample}"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/compile_hesitation.py {params.raw:q}'
        " --sample-id={wildcards.sample:q} --recipe={wildcards.recipe}"
        " --full-first-question={params.full_first_question}"
        " --video={output.video:q} --adapter={output.adapter:q} > {log:q} 2>&1"


# No output: the command is always obeyed, and changes only what differs.
rule regenerate_hesitation:
    input:
        compiled_files,
    log:
        "logs/regenerate_hesitation.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        raw=RAW_OPTIONS,
        manifest=config["manifest"],
    message:
        "put the compiled hesitation samples into {params.manifest} and its folders"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/regenerate_hesitation.py {params.raw:q}'
        " --manifest={params.manifest:q} --compiled=work/compiled 2>&1 | tee {log:q}"


# No output: it fails if a row would be refused, and its table has to survive that.
rule check_raw:
    log:
        "logs/check_raw.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    threads: 8
    params:
        raw=RAW_OPTIONS,
        full_first_question=RAW["full_first_question"],
    message:
        "what compiling would say of every raw row: results/check_raw.csv"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/check_raw.py {params.raw:q} --jobs={threads}'
        " --full-first-question={params.full_first_question} --table=results/check_raw.csv"
        " 2>&1 | tee {log:q}"


rule check_sample:
    input:
        check_inputs,
    output:
        "work/checks/{sample}.json",
    log:
        "logs/check_sample/{sample}.log",
    localrule: LIGHT_HERE
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        options=check_options,
        # What Snakemake's look at times misses: a file replaced by an older one, or deleted.
        content=lambda wildcards: SCHEDULE.content(wildcards.sample),
        denied=DENIED,
    message:
        "check {wildcards.sample}"
    shell:
        # One thread of numpy's: the check needs none, and starting one for each core takes longer.
        'OPENBLAS_NUM_THREADS=1 "$HFD_PYTHON" "$HFD_SCRIPTS"/check_sample.py'
        " --sample-id={wildcards.sample:q}"
        " {params.options:q} --output={output:q} > {log:q} 2>&1"


# No output: it fails if a sample does, and its table has to survive that.
rule check_data:
    input:
        lambda wildcards: [f"work/checks/{sample}.json" for sample in SCHEDULE.ids()],
    log:
        "logs/check_data.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        manifest=config["manifest"],
    message:
        "gather the checks of every sample into results/check_data.csv"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/check_data.py --manifest={params.manifest:q}'
        " --checks=work/checks --table=results/check_data.csv 2>&1 | tee {log:q}"
