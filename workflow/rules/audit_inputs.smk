"""How audit.smk starts the audit."""

AUDIT_COMMAND = (
    '"$HFD_PYTHON" "$HFD_SCRIPTS"/audit.py --manifest {params.manifest:q} --work work'
    " --checks work/checks --models-file {params.models_file:q} --cache work/audit/players"
    " --jobs {threads} {params.options:q} --models {params.models:q}"
)
AUDIT_MODELS_FILE = next(
    (str(path) for path in reversed(workflow.configfiles) if Path(path).name == "models.yaml"),
    f"{workflow.basedir}/config/models.yaml",
)


def audit_options(wildcards):
    """Optional inputs of the audit, as command-line options, if they exist."""
    found = {
        "--deny": config["check"]["deny_list"],
        "--transcripts": "work/audit/transcripts.jsonl",
        "--probes": "work/audit/probes",
    }
    return [f"{key}={path}" for key, path in found.items() if path and Path(path).exists()]
