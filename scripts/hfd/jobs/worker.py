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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hfd.data.manifest import Sample
from hfd.duplex.model import DuplexModel, Identity, ModelBroken
from hfd.errors import HfdError, LostAs
from hfd.files import read_json, replace_folder, write_json
from hfd.jobs.gpus import take_gpus
from hfd.jobs.hashes import HashCache
from hfd.jobs.lease import Leases
from hfd.jobs.spec import ModelSpec
from hfd.jobs.status import Expectation
from hfd.jobs.store import FILES, Store, restore
from hfd.jobs.witness import Attempt, NotWitnessed, Witness
from hfd.models.locate import module_source
from hfd.models.registry import create_model, resolved_settings
from hfd.secrets import scrub, secret_values
from hfd.stream.run import Run
from hfd.stream.session import run_sample

DEATHS_ALLOWED = 2
"""A sample under which this many workers of one shard ended is recorded as failed."""
_WAIT_S = 1.0
_STOPPING = (signal.SIGTERM, signal.SIGINT)
_FULL_DISK_BYTES = 2**18
_BROKEN_DEVICE = ("CUDA error", "device-side assert", "cuDNN error", "NCCL error", "HIP error")


class Stopped(BaseException):
    """SIGTERM or Ctrl-C: the sample in flight is dropped, everything finished stays."""


@dataclass(frozen=True)
class Shard:
    """What a worker is given.

    Attributes:
        name: the shard's name in the plan; deaths are counted per name.
        samples: its samples, in order.
        store_only: every sample should be finished already; no model may be loaded.
        gpus: cards the model needs.
        max_lag_s: arrival clock: a unit sent later than this fails the sample.
        wav_copies: further names under which the wav is expected beside a result.
        witness: where every attempt and its outcome is reported before it is stored, or None.
        on_end: called with each sample's id, ``done`` or ``failed``, and its answer if the model
            was run for it.
    """

    name: str
    samples: Sequence[Sample]
    store_only: bool = False
    gpus: int = 0
    max_lag_s: float = 0.5
    wav_copies: Sequence[str] = ()
    witness: Witness | None = None
    on_end: Callable[[str, str, str | None], None] | None = None


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
        Stopped: SIGTERM or Ctrl-C arrived.
        ModelBroken: the process or its device is beyond use.
        HfdError: the model cannot be made or loaded, or does not declare the voice it should.
    """
    worker = _Worker(spec, shard, store, say)
    with _stop_on_signal(), worker.leases:
        try:
            worker.run()
        finally:
            worker.unload()
    return worker.tally


class _Worker:
    def __init__(
        self, spec: ModelSpec, shard: Shard, store: Store, say: Callable[[str], None]
    ) -> None:
        self.spec, self.shard, self.store = spec, shard, store
        self._say = say
        self._secrets: list[str] = []
        self.expected = Expectation(spec, store.root, HashCache(store.hashes))
        self.leases = Leases(shard.name)
        self.tally = Tally()
        self._answer: str | None = None
        self._model: DuplexModel | None = None
        self._run: Run | None = None

    def run(self) -> None:
        """First everything nobody else holds, then what another worker has in hand."""
        _ = self.expected.recipe  # weights that cannot be read are no sample's fault
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

    def say(self, text: str) -> None:
        """Print a line; a secret of the settings or of the environment is no part of it."""
        self._say(scrub(text, self._secrets))

    def unload(self) -> None:
        if self._model is not None:
            self._model.unload()

    def _settle(self, sample: Sample) -> bool:
        """Bring one sample to an end; False if another worker has it in hand."""
        name = sample.sample_id
        try:
            fingerprint = self.expected.fingerprint(sample)
        except HfdError as error:  # its video or adapter cannot be read
            self._record(sample, "unknown", error, of_input=True)
            self._end(sample, "failed")
            return True
        if self.expected.is_valid(self.store.entry(name), sample):
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

    def _compute(self, sample: Sample, fingerprint: str) -> str:
        """Run the model over a leased sample, unless that turns out to be needless."""
        name = sample.sample_id
        if self.expected.is_valid(self.store.entry(name), sample):  # its last holder finished it
            return "done"
        if self.expected.is_valid(self.store.published(name), sample):
            restore(self.store, name)
            return "done"
        if problem := self._bad_check(sample):
            self._record(sample, fingerprint, HfdError(problem), of_input=True)
            return "failed"
        if problem := self._refusal(sample):
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
        witness = Attempt(self.shard.witness, name, attempt, fingerprint)
        witness.begins()
        try:
            result = run_sample(model, run, sample, part, fingerprint=fingerprint, attempt=attempt)
            for copy in self.shard.wav_copies:
                shutil.copyfile(part / FILES[0], part / copy)
            witness.ends(part)
            replace_folder(part, self.store.entry(name))
        except NotWitnessed:
            raise
        except Exception as error:
            broken = _is_beyond_use(error) or self._disk_is_full()
            self._record(sample, fingerprint, error, deaths=int(broken))
            witness.fails(scrub(_one_line(error), self._secrets))
            self.say(f"{place} {name!r}: failed: {_one_line(error)}")
            if broken:
                full = " (the disk is full)" if self._disk_is_full() else ""
                raise ModelBroken(f"{error}{full}") from error
            return "failed"
        self.store.error_file(name).unlink(missing_ok=True)
        self._answer = f"{result['status']}: {result['text']!r}"
        self._progress(place, sample, result["status"], time.monotonic() - started)
        return "done"

    def _disk_is_full(self) -> bool:
        """Whether the store has no room left: then every other sample would be lost as well."""
        return shutil.disk_usage(self.store.folder).free < _FULL_DISK_BYTES

    def _refusal(self, sample: Sample) -> str | None:
        """Why the model is not even tried."""
        if self.shard.store_only:
            shutil.rmtree(self.store.entry(sample.sample_id), ignore_errors=True)
            return "its finished files were damaged and have been dropped; run again to compute it"
        if self._deaths(sample) >= DEATHS_ALLOWED:
            last = (self.store.error(sample.sample_id) or {}).get("error")
            return f"{DEATHS_ALLOWED} workers ended while they ran it: {last}"
        return None

    def _bad_check(self, sample: Sample) -> str | None:
        """What the check of the sample's files found; a verdict holds for the files it names."""
        check = self.store.check(sample.sample_id)
        if not check.exists():
            return None
        found = read_json(check)
        if found["status"] == "fail":
            problems = [f["message"] for f in found["findings"] if f["status"] == "fail"]
            return f"its input was refused: {'; '.join(problems)} ({check})"
        if (found["video_sha256"], found["adapter_sha256"]) != self.expected.inputs(sample):
            return f"its video or adapter was replaced after it was checked ({check}); run again"
        return None

    def _loaded(self) -> tuple[DuplexModel, Run]:
        """The model, loaded on first use."""
        if self._model is None or self._run is None:
            take_gpus(self.shard.gpus)
            started = time.monotonic()
            self._model = make_model(self.spec)
            self._secrets = secret_values(self._model.capabilities.secrets)
            identity: Identity = self._model.load()
            self._run = Run(
                self.spec.name,
                self.spec.module,
                self.spec.settings,
                self.spec.seed,
                identity,
                self.expected.recipe.record(),
                self.shard.max_lag_s,
                resolved_settings(self._model),
                module_source(self.spec.module, self.spec.module_path),
            )
            self.say(f"loaded in {time.monotonic() - started:.1f} s")
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

    def _record(
        self,
        sample: Sample,
        fingerprint: str,
        error: Exception,
        *,
        deaths: int = 0,
        of_input: bool = False,
    ) -> None:
        """Write the error record of a sample: one line, and where in the code it happened."""
        previous = self.store.error(sample.sample_id) or {}
        known = isinstance(error, HfdError)
        lines = [] if known else "".join(traceback.format_exception(error)).splitlines()
        write_json(
            self.store.error_file(sample.sample_id),
            {
                "sample_id": sample.sample_id,
                "model": self.spec.name,
                "error": scrub(_one_line(error), self._secrets),
                "kind": type(error).__name__,
                "lost_as": _lost_as(error),
                "input": of_input,
                "attempt": previous.get("attempt", 0) + 1,
                "deaths": {self.shard.name: self._deaths(sample) + deaths},
                "fingerprint": fingerprint,
                "time": datetime.now().astimezone().isoformat(timespec="seconds"),
                "host": socket.gethostname(),
                "job": os.environ.get("SLURM_JOB_ID"),
                "traceback": [scrub(line, self._secrets) for line in lines[-30:]],
            },
        )

    def _end(self, sample: Sample, how: str) -> None:
        self.tally.ended[sample.sample_id] = how
        answer, self._answer = self._answer, None
        if self.shard.on_end:
            self.shard.on_end(sample.sample_id, how, answer)

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


def make_model(spec: ModelSpec) -> DuplexModel:
    """The model of a spec, its settings checked and nothing loaded.

    Raises:
        HfdError: it cannot be made, or does not declare the voice that it must deliver.
    """
    model = create_model(spec.module, spec.settings, spec.name, spec.module_path)
    declared = model.capabilities.voice_origin
    if spec.voice_origin not in (None, declared):
        raise HfdError(
            f"must deliver {spec.voice_origin}, its module declares {declared}",
            file="config/models.yaml",
            field=f"models.{spec.name}.voice_origin",
            remedy="Choose settings with which the model delivers this voice",
        )
    return model


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, HfdError) else f"{type(error).__name__}: {text}"


def _lost_as(error: BaseException) -> LostAs:
    """How the sample is counted: as the first error of its chain that says so."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, HfdError) and at.lost_as != "failed":
            return at.lost_as
        seen.add(id(at))
        at = at.__cause__
    return "failed"


def _is_beyond_use(error: Exception) -> bool:
    """Whether no other sample could succeed in this process either."""
    return isinstance(error, ModelBroken) or any(sign in str(error) for sign in _BROKEN_DEVICE)


@contextmanager
def _stop_on_signal() -> Iterator[None]:
    """Turn SIGTERM (Snakemake, Slurm's time limit, scancel) and Ctrl-C into an orderly end."""

    def stop(*_: object) -> None:
        for number in _STOPPING:  # the end itself must not be interrupted
            signal.signal(number, signal.SIG_IGN)
        raise Stopped

    before = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
