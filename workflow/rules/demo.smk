# Demo: the raw rows and samples that `make demo` runs on. Included only with config/demo.yaml,
# whose runs have a working folder of their own (snakemake --directory .demo), so that demo data
# and results never lie among the user's.

from hfd.data.demo import FILES


rule demo_data:
    output:
        [f"data/{name}" for name in FILES],
    log:
        "logs/demo_data.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        cache=config["demo"]["cache"],
    message:
        "make the demo's data from published packages"
    shell:
        '"$HFD_PYTHON" "$HFD_SCRIPTS"/demo_data.py --out=data --cache={params.cache:q}'
        " 2>&1 | tee {log:q}"


rule demo:
    input:
        rules.audit_cascade.output,
    log:
        "logs/demo.log",
    localrule: True
    message:
        "the demo is done"
    shell:
        'echo "Open $PWD/{input}/index.html" | tee {log:q}'
