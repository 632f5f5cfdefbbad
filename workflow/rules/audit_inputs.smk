"""How audit.smk starts the audit."""

AUDIT_COMMAND = (
    '"$HFD_PYTHON" "$HFD_SCRIPTS"/audit.py --manifest {params.manifest:q} --work work'
    " --checks work/checks --models-file {params.models_file:q} --cache work/audit/players"
    " --jobs {threads} {params.options:q} --models {params.models:q}"
    f" --primary {config['audit']['primary']}"
)
AUDIT_MODELS_FILE = next(
    (str(path) for path in reversed(workflow.configfiles) if Path(path).name == "models.yaml"),
    f"{workflow.basedir}/config/models.yaml",
)

PROBES = {
    "prefix": "does input after T change what was said before T?",
    "needle": "does input before T still change the answer?",
}


def audit_evidence(models):
    """What config.yaml asks to be made before an audit: transcripts, probes."""
    wanted = {
        "transcripts": "transcripts/{}.jsonl",
        "prefix_probe": "probes/prefix/{}.json",
        "needle_probe": "probes/needle/{}.json",
    }
    return [
        f"work/audit/{name.format(model)}"
        for key, name in wanted.items()
        if config["audit"].get(key)
        for model in models
    ]


def audit_options(wildcards):
    """Optional inputs of the audit, as command-line options, if they exist."""
    found = {
        "--deny": config["check"]["deny_list"],
        "--transcripts": "work/audit/transcripts",
        "--probes": "work/audit/probes",
    }
    return [f"{key}={path}" for key, path in found.items() if path and Path(path).exists()]


def listener():
    """The Python that has the recogniser: the embedded model's, which uses the same one."""
    return interpreter("cascade") if "cascade" in MODELS else "$HFD_PYTHON"
