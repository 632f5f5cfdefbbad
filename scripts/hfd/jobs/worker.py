"""The worker: one model, loaded at most once, over the samples of one shard.

Every finished sample is in the store at once; a failing one is recorded and the next one runs. So
whatever kills the worker costs at most the sample in flight, and a worker that starts again does
only what is left.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hfd.data.manifest import Sample
from hfd.duplex.model import DuplexModel, Identity, ModelBroken
from hfd.errors import HfdError
from hfd.files import read_json, replace_folder, write_json
from hfd.jobs.gpus import take_gpus
from hfd.jobs.hashes import HashCache
from hfd.jobs.lease import Leases
from hfd.jobs.spec import ModelSpec
from hfd.jobs.status import Expectation
from hfd.jobs.store import Store, restore, verify
from hfd.models.registry import create_model
from hfd.stream.run import Run
from hfd.stream.session import run_sample

DEATHS_ALLOWED = 2
"""A sample under which this many workers of one shard ended is recorded as failed."""
_WAIT_S = 1.0
_FULL_DISK_BYTES = 2**18
_BROKEN_DEVICE = ("CUDA error", "device-side assert", "cuDNN error", "NCCL error", "HIP error")


class Stopped(BaseException):
    """SIGTERM: the sample in flight is dropped, everything finished stays."""


@dataclass(frozen=True)
class Shard:
    """What a worker is given.

    Attributes:
        name: the shard's name in the plan; deaths are counted per name.
        samples: its samples, in order.
        store_only: every sample should be finished already; no model may be loaded.
        gpus: cards the model needs.
    """

    name: str
    samples: Sequence[Sample]
    store_only: bool = False
    gpus: int = 0


@dataclass
class Tally:
    """What became of the shard's samples; `ended` holds ``done`` or ``failed`` by id."""

    ended: dict[str, str] = field(default_factory=dict)
    computed: int = 0
    media_s: float = 0.0
    busy_s: float = 0.0


def run_shard(
    spec: ModelSpec, shard: Shard, store: Store, say: Callable[[str], None] = print
) -> Tally:
    """Bring every sample of a shard into the store, or its error on record.

    Raises:
        Stopped: SIGTERM arrived.
        ModelBroken: the process or its device is beyond use.
        HfdError: the model cannot be made or loaded, or does not declare the voice it should.
    """
    worker = _Worker(spec, shard, store, say)
    with _stop_on_sigterm(), worker.leases:
        try:
            worker.run()
        finally:
            worker.unload()
    return worker.tally


class _Worker:
    def __init__(
        self, spec: ModelSpec, shard: Shard, store: Store, say: Callable[[str], None]
    ) -> None:
        self.spec, self.shard, self.store, self.say = spec, shard, store, say
        self.expected = Expectation(spec, store.root, HashCache(store.root / "work" / "hashes"))
        self.leases = Leases(shard.name)
        self.tally = Tally()
        self._model: DuplexModel | None = None
        self._run: Run | None = None

    def run(self) -> None:
        """First everything nobody else holds, then what another worker has in hand."""
        # Samples under which a worker died come last: they must not keep the others waiting.
        waiting = sorted(self.shard.samples, key=lambda sample: self._deaths(sample))
        told: list[Sample] = []
        while waiting:
            held = [sample for sample in waiting if not self._settle(sample)]
            if held == waiting:
                if held != told:
                    self.say(f"waiting for another worker that has {held[0].sample_id!r} in hand")
                told = held
                time.sleep(_WAIT_S)
            waiting = held

    def unload(self) -> None:
        if self._model is not None:
            self._model.unload()

    def _settle(self, sample: Sample) -> bool:
        """Bring one sample to an end; False if another worker has it in hand."""
        name = sample.sample_id
        fingerprint = self.expected.fingerprint(sample)
        if self._is_stored(sample, fingerprint):
            self._end(sample, "done")
            return True
        previous = self.leases.take(self.store.lease(name))
        if previous is None:
            return False
        try:
            if previous:
                self._note_death(sample, fingerprint, previous)
                return False  # it must not keep the others waiting
            self._end(sample, self._compute(sample, fingerprint))
        finally:
            shutil.rmtree(self.store.part(name), ignore_errors=True)
            self.leases.free(self.store.lease(name))
        return True

    def _is_stored(self, sample: Sample, fingerprint: str) -> bool:
        """Whether the store has the sample, whole and made from the present inputs."""
        try:
            return verify(self.store.entry(sample.sample_id))["fingerprint"] == fingerprint
        except HfdError:
            return False

    def _compute(self, sample: Sample, fingerprint: str) -> str:
        """Run the model over a leased sample, unless that turns out to be needless."""
        name = sample.sample_id
        if self._is_stored(sample, fingerprint):  # by the worker that held it before
            return "done"
        if self._is_published(sample, fingerprint):
            restore(self.store, name)
            return "done"
        problem = self._refusal(sample)
        if problem:
            self._record(sample, fingerprint, HfdError(problem))
            return "failed"
        if self._disk_is_full():
            raise HfdError(
                "has no room left", file=self.store.folder, remedy="Free space, then run again"
            )
        attempt = (self.store.error(name) or {}).get("attempt", 0) + 1
        model, run = self._loaded()
        started, place = time.monotonic(), f"{len(self.tally.ended) + 1}/{len(self.shard.samples)}"
        self.say(f"{place} {name!r}: {sample.duration_seconds:.1f} s of media")
        part = self.store.part(name)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            result = run_sample(model, run, sample, part, fingerprint=fingerprint, attempt=attempt)
            replace_folder(part, self.store.entry(name))
        except Exception as error:
            broken = _is_beyond_use(error) or self._disk_is_full()
            self._record(sample, fingerprint, error, deaths=int(broken))
            self.say(f"{place} {name!r}: failed: {_one_line(error)}")
            if broken:
                full = " (the disk is full)" if self._disk_is_full() else ""
                raise ModelBroken(f"{error}{full}") from error
            return "failed"
        self.store.error_file(name).unlink(missing_ok=True)
        self._progress(place, sample, result["status"], time.monotonic() - started)
        return "done"

    def _disk_is_full(self) -> bool:
        """Whether the store has no room left: then every other sample would be lost as well."""
        return shutil.disk_usage(self.store.folder).free < _FULL_DISK_BYTES

    def _is_published(self, sample: Sample, fingerprint: str) -> bool:
        try:
            published = verify(self.store.published(sample.sample_id))
        except HfdError:
            return False
        return published["fingerprint"] == fingerprint

    def _refusal(self, sample: Sample) -> str | None:
        """Why the model is not even tried."""
        if self.shard.store_only:
            shutil.rmtree(self.store.entry(sample.sample_id), ignore_errors=True)
            return "its finished files were damaged and have been dropped; run again to compute it"
        if self._deaths(sample) >= DEATHS_ALLOWED:
            last = (self.store.error(sample.sample_id) or {}).get("error")
            return f"{DEATHS_ALLOWED} workers ended while they ran it: {last}"
        check = self.store.root / "work" / "checks" / f"{sample.sample_id}.json"
        if check.exists() and (found := read_json(check))["status"] == "fail":
            problems = [f["message"] for f in found["findings"] if f["status"] == "fail"]
            return f"its input was refused: {'; '.join(problems)} ({check})"
        return None

    def _loaded(self) -> tuple[DuplexModel, Run]:
        """The model, loaded on first use."""
        if self._model is None or self._run is None:
            take_gpus(self.shard.gpus)
            started = time.monotonic()
            self._model = create_model(self.spec.module, self.spec.settings, self.spec.name)
            declared = self._model.capabilities.voice_origin
            if self.spec.voice_origin not in (None, declared):
                raise HfdError(
                    f"must deliver {self.spec.voice_origin}, its module declares {declared}",
                    file="config/models.yaml",
                    field=f"models.{self.spec.name}.voice_origin",
                    remedy="Choose settings with which the model delivers this voice",
                )
            identity: Identity = self._model.load()
            self._run = Run(
                self.spec.name,
                self.spec.module,
                self.spec.settings,
                self.spec.seed,
                identity,
                self.expected.recipe.record(),
            )
            self.say(f"{self.spec.name} loaded in {time.monotonic() - started:.1f} s")
        return self._model, self._run

    def _deaths(self, sample: Sample) -> int:
        """How many workers of this shard ended under the sample."""
        deaths = (self.store.error(sample.sample_id) or {}).get("deaths", {})
        return deaths.get(self.shard.name, 0)

    def _note_death(self, sample: Sample, fingerprint: str, owner: dict[str, Any]) -> None:
        job = f", job {owner['job']}" if owner.get("job") else ""
        text = f"its worker died (process {owner.get('pid')} on {owner.get('host')}{job})"
        here = owner.get("shard") == self.shard.name
        self._record(sample, fingerprint, HfdError(text), deaths=int(here))

    def _record(self, sample: Sample, fingerprint: str, error: Exception, deaths: int = 0) -> None:
        """Write the error record of a sample, one line for the user and the rest for the doctor."""
        previous = self.store.error(sample.sample_id) or {}
        known = isinstance(error, HfdError)
        lines = [] if known else "".join(traceback.format_exception(error)).splitlines()
        write_json(
            self.store.error_file(sample.sample_id),
            {
                "sample_id": sample.sample_id,
                "model": self.spec.name,
                "error": _one_line(error),
                "kind": type(error).__name__,
                "attempt": previous.get("attempt", 0) + 1,
                "deaths": {self.shard.name: self._deaths(sample) + deaths},
                "fingerprint": fingerprint,
                "time": datetime.now().astimezone().isoformat(timespec="seconds"),
                "host": socket.gethostname(),
                "job": os.environ.get("SLURM_JOB_ID"),
                "traceback": lines[-30:],
            },
        )

    def _end(self, sample: Sample, how: str) -> None:
        self.tally.ended[sample.sample_id] = how

    def _progress(self, place: str, sample: Sample, status: str, took: float) -> None:
        tally = self.tally
        tally.computed += 1
        tally.media_s += sample.duration_seconds
        tally.busy_s += took
        failed = sum(how == "failed" for how in tally.ended.values())
        speed = f"{tally.media_s / tally.busy_s:.2f} s of media per second"
        self.say(
            f"{place} {sample.sample_id!r}: {status} in {took:.1f} s ({speed}, {failed} failed)"
        )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, HfdError) else f"{type(error).__name__}: {text}"


def _is_beyond_use(error: Exception) -> bool:
    """Whether no other sample could succeed in this process either."""
    return isinstance(error, ModelBroken) or any(sign in str(error) for sign in _BROKEN_DEVICE)


@contextmanager
def _stop_on_sigterm():
    """Turn SIGTERM (Snakemake, Slurm's time limit, scancel) into an orderly end."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end itself must not be interrupted
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
