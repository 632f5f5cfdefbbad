"""The worker: one model, loaded at most once, over the samples of one shard.

Every finished sample is in the store at once; a failing one is recorded and the next one runs. So
whatever kills the worker costs at most the samples in flight, and a worker that starts again does
only what is left. With several sessions the main thread takes leases, loads and listens to signals;
the sessions' threads run samples.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from hfd.data.manifest import Sample
from hfd.duplex.model import DuplexModel, Identity, ModelBroken
from hfd.errors import HfdError
from hfd.files import read_json, replace_folder
from hfd.jobs.failures import Failures, is_beyond_use, one_line
from hfd.jobs.gpus import take_gpus
from hfd.jobs.hashes import HashCache
from hfd.jobs.lease import Leases
from hfd.jobs.sessions import Sessions, Stopped, stop_on_signal
from hfd.jobs.spec import ModelSpec
from hfd.jobs.status import Expectation
from hfd.jobs.store import FILES, Store, restore
from hfd.jobs.witness import Attempt, NotWitnessed, Witness
from hfd.models.locate import module_source
from hfd.models.registry import create_model, resolved_settings
from hfd.secrets import secret_values
from hfd.stream.company import Company
from hfd.stream.run import Run
from hfd.stream.session import run_sample

DEATHS_ALLOWED = 2
"""A sample under which this many workers of one shard ended is recorded as failed."""
_WAIT_S = 1.0
_FULL_DISK_BYTES = 2**18


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


@dataclass(frozen=True)
class _Task:
    """A leased sample that the model has to run for.

    Attributes:
        attempt: how many times it has been tried, with this one.
        place: its number among the shard's samples, for progress lines.
        alone: a worker died under it; nothing may run beside it, or others would die with it.
    """

    sample: Sample
    fingerprint: str
    attempt: int
    place: str
    alone: bool


@dataclass(frozen=True)
class _Outcome:
    """How a task ended: ``done`` or ``failed``, the result's status, the answer, its seconds."""

    how: str
    status: str = ""
    answer: str | None = None
    took_s: float = 0.0


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
    with stop_on_signal(), worker.leases:
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
        self._saying = threading.Lock()
        self.failures = Failures(store, shard.name)
        self.expected = Expectation(spec, store.root, HashCache(store.hashes))
        self.leases = Leases(shard.name)
        self.tally = Tally()
        self._models: list[DuplexModel] = []
        self._sessions: Sessions[_Task, _Outcome] | None = None
        self._busy_since = 0.0

    def run(self) -> None:
        """First everything nobody else holds, then what another worker has in hand."""
        try:
            self._run_all()
        except BaseException as error:
            self._drop(error)
            raise

    def _run_all(self) -> None:
        _ = self.expected.recipe  # weights that cannot be read are no sample's fault
        # Samples under which a worker died come last: they must not keep the others waiting.
        waiting = sorted(self.shard.samples, key=lambda sample: self.failures.deaths(sample))
        told: list[Sample] = []
        while waiting:
            held = [sample for sample in waiting if not self._settle(sample)]
            self._collect(0)
            if held == waiting:
                if held != told:
                    self.say(f"waiting for another worker that has {held[0].sample_id!r} in hand")
                told = held
                time.sleep(_WAIT_S)
            waiting = held

    def say(self, text: str) -> None:
        """Print a line; a secret of the settings or of the environment is no part of it."""
        with self._saying:
            self._say(self.failures.told(text))

    def unload(self) -> None:
        for model in reversed(self._models):
            model.unload()

    def _settle(self, sample: Sample) -> bool:
        """Bring one sample to an end; False if another worker has it in hand."""
        name = sample.sample_id
        try:
            fingerprint = self.expected.fingerprint(sample)
        except HfdError as error:  # its video or adapter cannot be read
            self.failures.record(sample, "unknown", error, of_input=True)
            self._end(sample, "failed")
            return True
        if self.expected.is_valid(self.store.entry(name), sample):
            self._end(sample, "done")
            return True
        previous = self.leases.take(self.store.lease(name))
        if previous is None:
            return False
        task = None
        try:
            if previous:
                self.failures.note_death(sample, fingerprint, previous)
                return False  # it must not keep the others waiting
            how = self._without_model(sample, fingerprint)
            if how is None:
                task = self._start(sample, fingerprint)
            else:
                self._end(sample, how)
        finally:
            if task is None:
                self._give_back(sample)
        if task is not None and self._sessions is not None:
            self._collect(0 if task.alone else self._sessions.count - 1)
        return True

    def _without_model(self, sample: Sample, fingerprint: str) -> str | None:
        """How a leased sample ends without the model, or None if it has to run."""
        name = sample.sample_id
        if self.expected.is_valid(self.store.entry(name), sample):  # its last holder finished it
            return "done"
        if self.expected.is_valid(self.store.published(name), sample):
            restore(self.store, name)
            return "done"
        if problem := self._bad_check(sample):
            self.failures.record(sample, fingerprint, HfdError(problem), of_input=True)
            return "failed"
        if problem := self._refusal(sample):
            self.failures.record(sample, fingerprint, HfdError(problem))
            return "failed"
        if self._disk_is_full():
            raise HfdError(
                "has no room left", file=self.store.folder, remedy="Free space, then run again"
            )
        return None

    def _start(self, sample: Sample, fingerprint: str) -> _Task:
        """Run the model over a leased sample, on a session that is free."""
        sessions = self._loaded()
        alone = self.failures.deaths(sample) > 0
        if alone:
            self._collect(0)
        if not sessions.in_flight:
            self._busy_since = time.monotonic()
        attempt = self.failures.attempts(sample) + 1
        number = len(self.tally.ended) + sessions.in_flight + 1
        place = f"{number}/{len(self.shard.samples)}"
        task = _Task(sample, fingerprint, attempt, place, alone)
        self.say(f"{place} {sample.sample_id!r}: {sample.duration_seconds:.1f} s of media")
        sessions.start(task, partial(self._compute, task))
        return task

    def _collect(self, most: int) -> None:
        """Take outcomes until at most so many samples are in flight."""
        while self._sessions is not None and self._sessions.in_flight > most:
            self._take(*self._sessions.next_ended())

    def _take(self, task: _Task, ended: Future[_Outcome]) -> None:
        """Settle a sample whose session has ended.

        Raises:
            Whatever ended the session, if no other sample can succeed either.
        """
        try:
            outcome = ended.result()
            if outcome.how == "done":
                self._progress(task, outcome)
            self._end(task.sample, outcome.how, outcome.answer)
            self._busy_since = time.monotonic()
        finally:
            self._give_back(task.sample)

    def _drop(self, error: BaseException) -> None:
        """End what still runs beside a sample that ended the worker; what is finished stays.

        A device that broke under one sample may have been broken by another: each that ran then
        is suspect, and runs alone next time.
        """
        if self._sessions is None:
            return
        self._sessions.stop()
        while self._sessions.in_flight:
            task, ended = self._sessions.next_ended()
            if isinstance(error, ModelBroken) and isinstance(ended.exception(), Stopped):
                beside = HfdError(f"its worker ended under another sample beside it: {error}")
                self.failures.record(task.sample, task.fingerprint, beside, deaths=1)
            if ended.exception() is None:
                self._take(task, ended)
            else:
                self._give_back(task.sample)

    def _give_back(self, sample: Sample) -> None:
        shutil.rmtree(self.store.part(sample.sample_id), ignore_errors=True)
        self.leases.free(self.store.lease(sample.sample_id))

    def _compute(self, task: _Task, model: DuplexModel) -> _Outcome:
        """Run the model over a sample; several threads do so at the same time."""
        sample, name, place = task.sample, task.sample.sample_id, task.place
        started = time.monotonic()
        part = self.store.part(name)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        witness = Attempt(self.shard.witness, name, task.attempt, task.fingerprint)
        witness.begins()
        try:
            result = run_sample(
                model,
                self._run,
                sample,
                part,
                fingerprint=task.fingerprint,
                attempt=task.attempt,
            )
            for copy in self.shard.wav_copies:
                shutil.copyfile(part / FILES[0], part / copy)
            witness.ends(part)
            replace_folder(part, self.store.entry(name))
        except NotWitnessed:
            raise
        except Exception as error:
            broken = is_beyond_use(error) or self._disk_is_full()
            self.failures.record(sample, task.fingerprint, error, deaths=int(broken))
            witness.fails(self.failures.told(one_line(error)))
            self.say(f"{place} {name!r}: failed: {one_line(error)}")
            if broken:
                full = " (the disk is full)" if self._disk_is_full() else ""
                raise ModelBroken(f"{error}{full}") from error
            return _Outcome("failed")
        self.store.error_file(name).unlink(missing_ok=True)
        answer = f"{result['status']}: {result['text']!r}"
        return _Outcome("done", result["status"], answer, time.monotonic() - started)

    def _disk_is_full(self) -> bool:
        """Whether the store has no room left: then every other sample would be lost as well."""
        return shutil.disk_usage(self.store.folder).free < _FULL_DISK_BYTES

    def _refusal(self, sample: Sample) -> str | None:
        """Why the model is not even tried."""
        if self.shard.store_only:
            shutil.rmtree(self.store.entry(sample.sample_id), ignore_errors=True)
            return "its finished files were damaged and have been dropped; run again to compute it"
        if self.failures.deaths(sample) >= DEATHS_ALLOWED:
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

    def _loaded(self) -> Sessions[_Task, _Outcome]:
        """The model's sessions, loaded on first use."""
        if self._sessions is None:
            take_gpus(self.shard.gpus)
            started = time.monotonic()
            model = make_model(self.spec)
            self._models.append(model)
            self.failures.secrets = secret_values(model.capabilities.secrets)
            identity: Identity = model.load()
            for _ in range(1, self.spec.sessions):
                self._models.append(model.share())
            shared = self.spec.sessions > 1
            self._run = Run(
                self.spec.name,
                self.spec.module,
                self.spec.settings,
                self.spec.seed,
                identity,
                self.expected.recipe.record(),
                self.shard.max_lag_s,
                resolved_settings(model),
                module_source(self.spec.module, self.spec.module_path),
                Company(self.spec.sessions) if shared else None,
            )
            self._sessions = Sessions(self._models)
            beside = f", {self.spec.sessions} sessions: times are shared" if shared else ""
            self.say(f"loaded in {time.monotonic() - started:.1f} s{beside}")
        return self._sessions

    def _end(self, sample: Sample, how: str, answer: str | None = None) -> None:
        self.tally.ended[sample.sample_id] = how
        if self.shard.on_end:
            self.shard.on_end(sample.sample_id, how, answer)

    def _progress(self, task: _Task, outcome: _Outcome) -> None:
        """Count a finished sample, and the time that went by while any was in flight."""
        tally = self.tally
        tally.computed += 1
        tally.media_s += task.sample.duration_seconds
        tally.busy_s += time.monotonic() - self._busy_since
        failed = sum(how == "failed" for how in tally.ended.values())
        speed = f"{tally.media_s / tally.busy_s:.2f} s of media per second"
        self.say(
            f"{task.place} {task.sample.sample_id!r}: {outcome.status} in {outcome.took_s:.1f} s"
            f" ({speed}, {failed} failed)"
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
    most = model.capabilities.max_sessions
    if not 1 <= spec.sessions <= most:
        raise HfdError(
            f"is {spec.sessions}, its module runs at most {most} at a time",
            file="config/models.yaml",
            field=f"models.{spec.name}.sessions",
            remedy="Leave it out, or lower it" if most > 1 else "Leave it out",
        )
    model.sessions = spec.sessions
    return model
