"""The Kubernetes profile through Snakemake's executor, as far as it goes without a cluster."""

import kubernetes_validate

from tests.workflow.desk import MODELS_FOR_TESTS, REPO
from tests.workflow.fake_kubernetes import serve


def test_each_shard_is_one_valid_pod_on_the_shared_volume(desk):
    names = ["中文 'x'", "b", "c"]
    desk.add_samples(names)
    desk.add_model("loud")
    desk.models["loud"]["resources"] |= {"gpu": 2, "cpus": 4, "mem_mb": 900}
    desk.profile = str(REPO / "profiles" / "kubernetes")
    path = [REPO / ".venv-kubernetes", desk.profile, MODELS_FOR_TESTS]
    pod = {"PYTHONPATH": str(MODELS_FOR_TESTS), "KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    with serve(desk.path, pod) as (fake, kubeconfig):
        desk.run(
            "results_loud",
            "--cores=8",
            "--seconds-between-status-checks=1",
            f"--kubernetes-volume-persistent-volumes=hfd:{desk.path}",
            f"--precommand=cd {desk.path}",
            environment={"KUBECONFIG": str(kubeconfig), "PYTHONPATH": ":".join(map(str, path))},
        )
    assert desk.results("loud") == set(names)
    assert desk.calls("loud", "load").total() == len(fake.jobs) == 2  # the pilot and the rest
    for job in fake.jobs.values():
        kubernetes_validate.validate(
            {"apiVersion": "batch/v1", "kind": "Job", **job}, "1.34", strict=True
        )
        pod = job["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert container["image"] == "python:3.11"
        assert {"name": "hfd", "mountPath": str(desk.path)} in container["volumeMounts"]
        assert {"name": "hfd", "persistentVolumeClaim": {"claimName": "hfd"}} in pod["volumes"]
        wanted = {"cpu": "4000m", "memory": "900M", "nvidia.com/gpu": "2"}
        assert container["resources"]["limits"].items() >= wanted.items()
