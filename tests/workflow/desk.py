"""A working folder with compiled samples and the test model, and the real Snakemake on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import imageio_ffmpeg
import psutil
import yaml

from hfd.files import write_json

REPO = Path(__file__).resolve().parents[2]
ADAPTER = json.dumps(
    {
        "events": [
            {
                "start": 0.1,
                "end": 0.9,
                "role": "first_question",
                "text": "what",
                "spoken_text": "what",
            }
        ]
    }
)
HANGS_S = 1500
"""What still runs after so long hangs: on a machine that is busy, minutes become many."""
MODELS_FOR_TESTS = REPO / "tests" / "models_for_tests"


def write_video(path: Path, pictures: int = 20, seed: int = 1, size: str = "64x48") -> None:
    """A compiled sample: moving frame and quiet noise, then the tail of 15 frozen frames."""
    body = pictures - 15
    # fmt: off
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y",
         "-f", "lavfi", "-i", f"testsrc=s={size}:r=5,trim=end_frame={body},hue=h={seed * 40}"
                              ",tpad=stop_mode=clone:stop=15",
         "-f", "lavfi", "-i", f"anoisesrc=r=16000:a=0.05:seed={seed},atrim=end={body / 5},apad",
         "-t", str(pictures / 5), "-pix_fmt", "yuv420p", "-c:v", "libx264", "-crf", "15",
         "-ac", "1", "-c:a", "flac", "-strict", "-2", path],
        check=True,
    )
    # fmt: on


@dataclass(frozen=True)
class Started:
    """A Snakemake at work, and the file with what it prints."""

    process: subprocess.Popen[bytes]
    log: Path

    def end(self) -> str:
        """Wait for its end; return what it printed."""
        self.process.wait(HANGS_S)
        return self.log.read_text()

    def turns(self, every_s: float) -> Iterator[None]:
        """A turn for the caller every so often until it ends; one that hangs is killed."""
        deadline = time.monotonic() + HANGS_S
        while self.process.poll() is None:
            yield
            if time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"still at work after {HANGS_S} s: {self.log.read_text()}")
            time.sleep(every_s)

    def workers(self) -> list[psutil.Process]:
        """The worker processes of its shards."""
        try:
            found = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:  # it has ended
            return []
        return [process for process in found if _is_worker(process)]


def _shipped_models() -> dict[str, Any]:
    """The repository's own models, which every user's configuration has; not part of `all`."""
    shipped = yaml.safe_load((REPO / "config" / "models.yaml").read_text(encoding="utf-8"))
    return {name: entry | {"in_all": False} for name, entry in shipped["models"].items()}


def _is_worker(process: psutil.Process) -> bool:
    """Whether it is a living worker; one that ends meanwhile, or waits to be reaped, is none."""
    try:
        return process.name() != "bash" and "infer.py" in " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@dataclass
class Desk:
    """A run's working folder."""

    path: Path
    models: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    profile: str = str(REPO / "profiles" / "local")
    repository: Path = REPO
    environment: Mapping[str, str] = field(default_factory=dict)
    runs: int = 0

    def add_samples(self, ids: Iterable[str], task: str = "chat", pictures: int = 20) -> None:
        """Append samples to the manifest; all get copies of one video."""
        videos, adapters = self.path / "data" / "videos", self.path / "data" / "adapters"
        videos.mkdir(parents=True, exist_ok=True)
        adapters.mkdir(exist_ok=True)
        template = self.path / f"{pictures}.mp4"
        if not template.exists():
            write_video(template, pictures)
        with (self.path / "data" / "manifest.jsonl").open("a", encoding="utf-8") as manifest:
            for name in ids:
                shutil.copyfile(template, videos / f"{name}.mp4")
                (adapters / f"{name}.json").write_text(ADAPTER)
                row = {
                    "sample_id": name,
                    "task": task,
                    "video": f"data/videos/{name}.mp4",
                    "adapter": f"data/adapters/{name}.json",
                    "duration_seconds": pictures / 5,
                }
                manifest.write(json.dumps(row, ensure_ascii=False) + "\n")

    def add_model(self, name: str, shard_minutes: float = 60, **settings: Any) -> None:
        """Add a test model that logs its calls to <name>.calls and reads <name>.faults."""
        self.faults(name)
        self.models[name] = {
            "module": "testmodels.beeper",
            "voice_origin": "native_talker",
            "shard_minutes": shard_minutes,
            "load_minutes": 0,
            "resources": {"mem_mb": 500},
            "settings": {
                "calls": str(self.path / f"{name}.calls"),
                "faults": str(self.path / f"{name}.faults"),
                **settings,
            },
        }

    def faults(self, model: str, **kinds: list[str]) -> None:
        """Make samples of a model fail, or `hold`, in given ways; without any: mend them."""
        write_json(self.path / f"{model}.faults", kinds)

    def write_config(self) -> None:
        folder = self.path / "config"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(yaml.safe_dump(self.config or {"pilot_n": 2}))
        models = {"models": _shipped_models() | self.models}
        (folder / "models.yaml").write_text(yaml.safe_dump(models))

    def start(self, *args: str, environment: Mapping[str, str] = MappingProxyType({})) -> Started:
        """Start Snakemake in the folder; what it prints goes to a file, so that no pipe fills."""
        self.write_config()
        command = [sys.executable, "-m", "snakemake", "-s", str(self.repository / "Snakefile")]
        command += ["--profile", self.profile, *args]
        self.runs += 1
        log = self.path / f"run{self.runs}.txt"
        with log.open("w") as stream:
            process = subprocess.Popen(
                command,
                cwd=self.path,
                env=os.environ
                | {"PYTHONPATH": str(MODELS_FOR_TESTS), "PYTHONUNBUFFERED": "1"}
                | environment
                | self.environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        return Started(process, log)

    def run(self, *args: str, ok: bool | None = True, **options: Any) -> str:
        """Run Snakemake to its end and return what it printed; `ok` states the exit expected."""
        started = self.start(*args, **options)
        output = started.end()
        if ok is not None:
            assert (started.process.returncode == 0) == ok, output
        return output

    def calls(self, model: str, what: str = "begin") -> Counter[str]:
        """How often the model began (or ended) each sample, or was loaded."""
        log = self.path / f"{model}.calls"
        lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
        return Counter(line[1] for line in lines if line[0] == what)

    def results(self, model: str) -> set[str]:
        """Samples with a published result.json."""
        return {path.parent.name for path in (self.path / "results" / model).glob("*/result.json")}

    def result(self, model: str, sample: str, name: str = "result.json") -> Path:
        return self.path / "results" / model / sample / name


def counts(output: str, model: str) -> tuple[int, ...]:
    """Expected, done, failed and missing of a model, from the table in an output."""
    lines = (line.split() for line in output.splitlines())
    return next(
        tuple(map(int, line[1:])) for line in lines if line[:1] == [model] and len(line) == 5
    )
