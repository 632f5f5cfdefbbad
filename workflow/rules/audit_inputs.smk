"""How audit.smk starts the audit."""

from hfd.files import sha256_file

AUDIT_COMMAND = (
    '"$HFD_PYTHON" "$HFD_SCRIPTS"/audit.py --manifest {params.manifest:q} --work work'
    " --checks work/checks --models-file {params.models_file:q} --cache work/audit/players"
    " --jobs {threads} {params.options:q} --models {params.models:q}"
    f" --primary {config['audit']['primary']}"
)
PROBES = {
    "prefix": "does input after T change what was said before T?",
    "needle": "does input before T still change the answer?",
    "repeat": "how far does it differ from itself?",
    "pause": "do pauses between its steps change what it says?",
    "cache": "does the same sample before it change what it says?",
    "neighbour": "does another sample before it change what it says?",
    "vision": "do other video frames change the answer?",
    "jitter": "what survives late units and lost frames?",
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


def audit_inputs(models):
    """What an audit waits for: every result and verdict, and the evidence config.yaml asks for."""

    def inputs(wildcards):
        ids = SCHEDULE.ids()
        results = [path for model in models for path in result_files(model, ids)]
        return results + [f"work/checks/{sample}.json" for sample in ids] + audit_evidence(models)

    return inputs


def audit_options(wildcards):
    """Optional inputs of the audit, as command-line options; what is not there counts as none."""
    given = ["--transcripts=work/audit/transcripts", "--probes=work/audit/probes"]
    given.append(f"--nonce={config['audit']['nonce']}")
    given.append(f"--labels={config['audit']['labels']}")
    return given + ([f"--deny={DENY_LIST}"] if DENY_LIST else [])


def evidence_there(models):
    """Evidence that somebody made without config.yaml asking for it, by content.

    A parameter, no input: when it appears, changes or goes, the audit is made anew, but an audit
    never runs a model again because a probe of it has become old.
    """
    asked = set(audit_evidence(models))
    kinds = ["transcripts/{}.jsonl", *(f"probes/{kind}/{{}}.json" for kind in (*PROBES, "canary"))]
    paths = [f"work/audit/{kind.format(model)}" for kind in kinds for model in models]
    paths += sorted(str(path) for path in Path(config["audit"]["labels"]).glob("*.json"))
    return [
        f"{path} {sha256_file(path)}"
        for path in paths
        if path not in asked and Path(path).is_file()
    ]


def probed_results(model):
    """The results that a probe belongs to."""
    return lambda wildcards: result_files(model, SCHEDULE.ids())


def probe_options(model):
    """Which results a probe belongs to, and the auditor's word for drawing its samples."""
    return [f"--results=results/{model}", f"--nonce={config['audit']['nonce']}"]


def models_now():
    """The models that `audit_now` judges: those that are named, or those that have results."""
    chosen = config["audit"]["models"]
    unknown = [name for name in chosen if name not in MODELS]
    if unknown:
        sys.exit(f"error: config/config.yaml: audit.models: there is no model {unknown[0]!r}")
    return chosen or [name for name in MODELS if Path("results", name).is_dir()] or list(MODELS)


def listener():
    """The Python that has the recogniser: the embedded model's, which uses the same one."""
    return interpreter("cascade") if "cascade" in MODELS else "$HFD_PYTHON"
