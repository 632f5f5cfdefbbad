"""A Kubernetes API server as far as Snakemake's executor calls it; its pods are local processes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class FakeKubernetes:
    """What was posted, and the processes that stand for pods.

    Attributes:
        environment: of every pod, besides PATH.
        jobs: manifests of the jobs by name, in the order in which they were posted.
    """

    environment: Mapping[str, str]
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    _pods: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("kind") == "Job" or "template" in body.get("spec", {}):
            name = body["metadata"]["name"]
            self.jobs[name] = body
            container = body["spec"]["template"]["spec"]["containers"][0]
            self._pods[name] = subprocess.Popen(
                [*container["command"], *container["args"]], cwd="/",
                env={"PATH": os.environ["PATH"], **self.environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        return body

    def get(self, path: str) -> dict[str, Any]:
        if "/pods" in path:
            return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}
        name = path.split("/jobs/")[1].split("/")[0]
        code = self._pods[name].poll()
        status = {} if code is None else {"succeeded" if code == 0 else "failed": 1}
        return {**self.jobs[name], "status": status}


@contextmanager
def serve(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[FakeKubernetes, Path]]:
    """Serve on 127.0.0.1; yields what is recorded and the kubeconfig that leads there."""
    fake = FakeKubernetes(environment)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, value: dict[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _body(self) -> dict[str, Any]:
            return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")

        def do_POST(self) -> None:
            self._answer(fake.post(self._body()))

        def do_GET(self) -> None:
            self._answer(fake.get(self.path))

        def do_DELETE(self) -> None:
            self._body()
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = folder / "kubeconfig"
    address = f"http://127.0.0.1:{server.server_port}"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "fake", "cluster": {"server": address}}],
                "users": [{"name": "fake", "user": {}}],
                "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
                "current-context": "fake",
            }
        )
    )
    try:
        yield fake, kubeconfig
    finally:
        server.shutdown()
