"""The Kubernetes job, as far as it can be checked without a cluster."""

import subprocess
import sys

import kubernetes_validate
import yaml

from tests.workflow.desk import REPO, counts


def test_the_job_is_valid_and_runs_a_command_that_the_workflow_takes(desk):
    job = yaml.safe_load((REPO / "profiles" / "kubernetes" / "job.yaml").read_text())
    kubernetes_validate.validate(job, "1.34", strict=True)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    program, *arguments = container["command"]
    assert program == "snakemake"
    desk.add_samples(["a"])
    desk.add_model("roma")
    desk.write_config()
    (desk.path / "profiles").symlink_to(REPO / "profiles")
    dry = [sys.executable, "-m", program, "-n", "-s", REPO / "Snakefile", *arguments]
    done = subprocess.run(dry, cwd=desk.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert counts(done.stderr, "roma") == (1, 0, 0, 1)
