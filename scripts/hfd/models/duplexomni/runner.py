"""DuplexOmni: native duplex, native talker, 480 ms slices, through the authors' own servers.

The thinker and the talker are called directly, slice by slice; the authors' orchestrator and
simulator are not used, because they lose which sound belongs to which slice (docs/duplexomni.md).
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Any

from hfd.duplex.events import Metric
from hfd.duplex.model import (
    Capabilities,
    DuplexModel,
    Emit,
    Identity,
    ModelBroken,
)
from hfd.duplex.units import SampleInfo, Unit
from hfd.errors import HfdError
from hfd.media_time import samples_to_seconds, seconds_to_samples
from hfd.models.duplexomni.context import SLICE_SAMPLES, Limits, refuse_unless_fits
from hfd.models.duplexomni.frames import frame_rule
from hfd.models.duplexomni.prompts import S2_SYSTEM_PROMPT
from hfd.models.duplexomni.settings import StackLaunch, StackUrls, filled, read_settings
from hfd.models.duplexomni.slices import SliceLoop
from hfd.models.duplexomni.stack import Stack
from hfd.models.duplexomni.weights import describe_weights
from hfd.models.duplexomni.wire import OUTPUT_RATE, SLICE_OUT_SAMPLES, SOUND_RULE

CODEC_FRAMES_PER_SLICE = 6


class DuplexOmni(DuplexModel):
    """One worker's client of one stack."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = read_settings(settings)
        self._stack = Stack(self._settings)
        self._held = ExitStack()

    @property
    def capabilities(self) -> Capabilities:
        settings = self._settings
        stack = settings.stack
        return Capabilities(
            unit_samples=SLICE_SAMPLES,
            output_rate=OUTPUT_RATE,
            clock=settings.clock,
            voice_origin="native_talker",
            frame_rule=frame_rule(settings),
            max_media_s=samples_to_seconds(Limits(0).audios * SLICE_SAMPLES),
            gpus=stack.thinker_tp + stack.talker_tp if isinstance(stack, StackLaunch) else 0,
            codec_hop_samples=SLICE_OUT_SAMPLES // CODEC_FRAMES_PER_SLICE,
            secrets=(settings.s2.api_key_env,) if settings.s2 and settings.s2.api_key_env else (),
        )

    def preflight(self) -> Sequence[str]:
        try:
            stack = filled(self._settings.stack)
        except HfdError as error:
            return (str(error),)
        if not isinstance(stack, StackLaunch):
            return ()
        folders = ("server_root", "thinker_weights", "talker_weights")
        problems = [
            f"settings.stack.{name}: there is no folder {getattr(stack, name)}"
            for name in folders
            if not Path(getattr(stack, name)).is_dir()
        ]
        if shutil.which(stack.python) is None:
            problems.append(f"settings.stack.python: {stack.python} is no program here")
        return problems

    def load(self) -> Identity:
        s2 = self._settings.s2
        if s2 is not None:
            s2.key()  # a missing key is told before minutes of loading
        health = self._stack.start()
        self._model = health["model"]
        self._limits = Limits(health["max_model_len"])
        weights, dtypes = self._weights()
        return Identity(
            "MuyeHuang/DuplexOmni",
            weights,
            dtypes=dtypes,
            max_context_tokens=self._limits.thinker_tokens,
            detail={
                "thinker": PurePath(self._model).name,
                "tensor_parallel_size": health.get("tensor_parallel_size"),
                "servers": "started" if self._settings.stack_is_ours else "running",
                "s2": "off" if s2 is None else s2.identity,
                "system_prompt": self._settings.system_prompt,
                "s2_system_prompt": None if s2 is None else S2_SYSTEM_PROMPT,
                "sound_rule": SOUND_RULE,
            },
        )

    def _weights(self) -> tuple[str | None, dict[str, int]]:
        """Name of the weights, and their types where the files can be seen."""
        named = self._settings.weights_revision
        stack = self._stack.settings
        if isinstance(stack, StackUrls):
            return named, {}
        thinker, dtypes = describe_weights(Path(stack.thinker_weights))
        talker, others = describe_weights(Path(stack.talker_weights))
        found = thinker if talker == thinker else f"{thinker}+{talker}"
        return f"{named}:{found}" if named else found, {**others, **dtypes}

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        with ExitStack() as held:  # given up at once if anything below refuses
            held.enter_context(self._stack.session())
            try:
                self._stack.ensure()
            except HfdError as error:
                raise ModelBroken(str(error)) from error
            emit(Metric("context", self._context(sample)))
            self._loop = SliceLoop(
                self._settings,
                self._stack,
                model=self._model,
                session_id=f"hfd-{uuid.uuid4().hex}",
                seed=sample.seed,
                media_s=sample.media_s,
                emit=emit,
            )
            held.callback(self._loop.close)
            self._held = held.pop_all()

    def _context(self, sample: SampleInfo) -> dict[str, int]:
        """What the file needs of the thinker's context; refuses one that does not fit."""
        need = refuse_unless_fits(
            seconds_to_samples(sample.media_s),
            sample.width,
            sample.height,
            self._limits,
            picture_interval=self._settings.picture_interval,
            long_side=self._settings.picture_long_side,
        )
        return {
            "slices": need.slices,
            "pictures": need.frames,
            "picture_tokens": need.frame_tokens,
            "thinker_tokens": need.thinker_tokens,
            "thinker_limit_tokens": self._limits.thinker_tokens,
        }

    def push(self, unit: Unit) -> None:
        self._loop.push(unit)

    def finish(self) -> Mapping[str, Any]:
        return self._loop.finish()

    def close(self) -> None:
        self._held.close()

    def unload(self) -> None:
        self._stack.stop()


MODEL = DuplexOmni
