"""vLLM-Omni's own duplex server on a CPU, with nothing faked but the network.

    python vllm_omni_server.py PORT [ANSWER_UNITS]

Websocket handler, session manager, runner and MiniCPM-o plugin are those of the wheel
``vllm-omni==0.32.0rc1`` as it is. Stand-ins take the place of vLLM and of packages that only a GPU
needs. The "model" listens to two one-second units, speaks in the next ANSWER_UNITS, and listens.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import dataclasses
import importlib.util
import logging
import math
import sys
import types
import uuid
from pathlib import Path

import numpy as np

ROOT = Path(importlib.util.find_spec("vllm_omni").submodule_search_locations[0])
BARE = (
    "", ".engine", ".entrypoints", ".config", ".metrics", ".model_executor", ".entrypoints.openai",
    ".entrypoints.openai.realtime", ".utils", ".inputs", ".model_executor.models",
    ".model_executor.models.minicpmo_4_5", ".model_executor.models.minicpmo_4_5.duplex",
)  # fmt: skip
SPEAKS_FROM = 3
COMPUTE_S = 0.15


def module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made
    return made


def package(name, path="/nonexistent"):
    made = module(name)
    made.__path__ = [str(path)]
    return made


class SamplingParams:
    def __init__(self, **fields):
        defaults = {"max_tokens": 8, "stop_token_ids": None, "temperature": 1.0}
        self.__dict__.update(defaults | {"extra_args": None, "seed": None} | fields)

    def clone(self):
        return SamplingParams(**self.__dict__)


class MediaConnector:
    def __init__(self, *args, **kwargs):
        pass

    async def fetch_audio_async(self, url):
        return np.zeros(16_000, np.float32), 16_000


class AsyncOmni:
    def __init__(self, model="", *args, **kwargs):
        self.model = model

    def _final_output_handler(self):
        pass

    def shutdown(self, timeout=None):
        pass


def install_stand_ins():
    """Packages without their heavy ``__init__``, and what vLLM would give."""
    import msgspec

    for name in BARE:
        package("vllm_omni" + name, ROOT / name.strip(".").replace(".", "/"))
    for name in ("vllm", "vllm.multimodal", "vllm.v1"):
        package(name)
    module("vllm.logger", init_logger=logging.getLogger)
    module("vllm.utils", random_uuid=lambda: uuid.uuid4().hex)
    kinds = types.SimpleNamespace(DELTA=1, CUMULATIVE=0, FINAL_ONLY=2)
    module("vllm.sampling_params", SamplingParams=SamplingParams, RequestOutputKind=kinds)
    module("vllm.multimodal.media", MediaConnector=MediaConnector)
    module("vllm.outputs", RequestOutput=type("R", (), {}), CompletionOutput=type("C", (), {}))
    module("vllm.v1.outputs", ModelRunnerOutput=object)
    module("vllm_omni.inputs.data", OmniPromptType=object)
    queue = types.new_class("EngineQueueMessage", (msgspec.Struct,))
    module("vllm_omni.engine.messages", EngineQueueMessage=queue)
    module("vllm_omni.engine.duplex_omni_engine", DuplexOmniEngine=type("E", (), {}))
    module("vllm_omni.entrypoints.async_omni", AsyncOmni=AsyncOmni)
    vocoder = "vllm_omni.model_executor.models.minicpmo_4_5.minicpmo_4_5_code2wav"
    module(vocoder, load_default_prompt_audio=lambda *args, **kwargs: None)
    module(
        "transformers",
        PretrainedConfig=object,
        PreTrainedTokenizerBase=object,
        AutoTokenizer=object,
    )
    outputs = importlib.util.spec_from_file_location(
        "vllm_omni.outputs",
        ROOT / "outputs/__init__.py",
        submodule_search_locations=[str(ROOT / "outputs")],
    )
    sys.modules["vllm_omni.outputs"] = loaded = importlib.util.module_from_spec(outputs)
    outputs.loader.exec_module(loaded)
    install_runtime_config()


def install_runtime_config():
    """One dataclass of a file whose other content needs vLLM."""
    source = (ROOT / "config/stage_config.py").read_text()
    (found,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "DuplexSessionRuntimeConfig"
    )
    first = min([found.lineno, *(d.lineno for d in found.decorator_list)])
    body = "\n".join(source.splitlines()[first - 1 : found.end_lineno])
    made = module("vllm_omni.config.stage_config")
    made.__dict__.update(
        dataclass=dataclasses.dataclass,
        field=dataclasses.field,
        fields=dataclasses.fields,
        math=math,
    )
    exec(
        compile(f"from __future__ import annotations\n{body}", "stage_config", "exec"),
        made.__dict__,
    )


install_stand_ins()

from vllm_omni.config.stage_config import DuplexSessionRuntimeConfig  # noqa: E402
from vllm_omni.engine.duplex import messages  # noqa: E402
from vllm_omni.engine.duplex.contracts import (  # noqa: E402
    DuplexOutputContext,
    DuplexRequestIdentity,
    DuplexStagePort,
    DuplexStageSubmissionResult,
)
from vllm_omni.engine.duplex.session.manager import DuplexSessionManager  # noqa: E402
from vllm_omni.entrypoints.duplex.serving import OmniDuplexSessionHandler  # noqa: E402
from vllm_omni.entrypoints.duplex_omni import DuplexOmni  # noqa: E402
from vllm_omni.model_executor.models.minicpmo_4_5.duplex.plugin import (  # noqa: E402
    MiniCPMO45DuplexPlugin,
)


def pcm16(audio, rate, form, speed):
    samples = np.asarray([] if audio is None else audio, np.float32).reshape(-1)
    return base64.b64encode((samples * 32767).astype("<i2").tobytes()).decode() or None


class Network(DuplexStagePort):
    """The two stages: a thinker that decides, a talker with a tone; outputs are cumulative."""

    stage_count = 2

    def __init__(self, answer_units):
        self.answer_units = answer_units
        self.manager = None
        self.units = {}

    def sampling_defaults(self):
        return (SamplingParams(), SamplingParams())

    def ensure_request(self, context):
        pass

    async def cleanup(self, ids, *, abort=False):
        pass

    async def abort_requests(self, ids):
        pass

    async def submit(self, submission):
        context = submission.context
        session = context.session_id
        self.units[session] = self.units.get(session, 0) + 1
        loop = asyncio.get_running_loop()
        loop.call_later(COMPUTE_S, self.reply, self.units[session], session, context)
        return DuplexStageSubmissionResult(
            request_id=context.request_id, stage_id=context.stage_id, replica_id=0
        )

    def reply(self, unit, session, context):
        runner = self.manager.runners.get(session)
        if runner is None or runner.session.fence != context.fence:
            return  # closed, or cancelled meanwhile
        spoken = unit - SPEAKS_FROM + 1
        speaks = 1 <= spoken <= self.answer_units
        runner.on_stage_output(
            0,
            self.thought(context.request_id, speaks),
            None,
            request_id=context.request_id,
            context=self.about(context, finished=True),
        )
        if speaks:
            runner.on_stage_output(
                1,
                self.voice(context, spoken),
                None,
                request_id=context.request_id,
                context=self.about(context, finished=False),
            )

    def about(self, context, finished):
        identity = DuplexRequestIdentity(session_id=context.session_id, fence=context.fence)
        return DuplexOutputContext(
            identity=identity,
            final_stage_id=1,
            segment_finished=finished,
            segment_token_ids=(),
            segment_output_metadata={},
        )

    def thought(self, request, speaks):
        stop = 9 if speaks else 7
        text = types.SimpleNamespace(
            text="hello " if speaks else "",
            token_ids=[11, 12, stop + 4 if speaks else 7],
            stop_reason=stop,
            multimodal_output={},
        )
        meta = {"meta.listen_token_id": 7}
        return types.SimpleNamespace(
            request_id=request, finished=True, outputs=[text], multimodal_output=meta
        )

    def voice(self, context, spoken):
        phase = np.arange(24_000 * spoken) * (2 * np.pi * 330 / 24_000)
        text = types.SimpleNamespace(text="hello " * spoken, token_ids=[], multimodal_output={})
        last = spoken == self.answer_units
        meta = {
            "audio": (0.2 * np.sin(phase)).astype(np.float32),
            "sr": 24_000,
            "meta.tts_is_last_chunk": np.array([1], np.int32),
            "meta.turn_end": np.array([int(last)], np.int32),
            "meta.duplex_turn_id": np.array([0], np.int32),
            "meta.duplex_epoch": np.array([context.fence.epoch], np.int32),
        }
        return types.SimpleNamespace(
            request_id=context.request_id, finished=False, outputs=[text], multimodal_output=meta
        )


class Engine:
    """The part of the engine that the handler talks to."""

    def __init__(self, answer_units):
        self.plugin = MiniCPMO45DuplexPlugin(pcm16)
        self.network = Network(answer_units)
        self.events, self.results = asyncio.Queue(), asyncio.Queue()
        self.duplex_session_config = DuplexSessionRuntimeConfig()
        self.manager = self.network.manager = DuplexSessionManager(
            plugin=self.plugin,
            stage_port=self.network,
            output_sink=self.events,
            result_sink=self.results,
            runtime_config=self.duplex_session_config,
            model_config=None,
            clock=None,
        )

    @property
    def duplex_capabilities(self):
        return self.plugin.capabilities

    async def open_session_async(self, session_id, config, *, output_buffer, timeout=None):
        await self.manager.handle(
            messages.OpenDuplexSessionMessage(
                control_id="open",
                session_id=session_id,
                session_config=config,
                output_buffer=output_buffer,
            )
        )
        result = await asyncio.wait_for(self.results.get(), 5)
        if not result.ok:
            code = getattr(result, "error_code", None) or "open_failed"
            text = getattr(result, "error", None) or str(result)
            raise messages.DuplexSessionError(text, code=code, session_id=session_id)
        return result

    async def close_session_async(self, session_id, *, reason="", timeout=None):
        await self.manager.handle(
            messages.CloseDuplexSessionMessage(
                control_id="close", session_id=session_id, reason=reason
            )
        )
        return await asyncio.wait_for(self.results.get(), 5)

    async def submit_command_async(self, session_id, command):
        self.manager.dispatch(
            messages.DuplexSessionCommandMessage(session_id=session_id, command=command)
        )

    async def touch_session_async(self, *args, **kwargs):
        pass


async def main(port, answer_units):
    import uvicorn
    from fastapi import FastAPI, WebSocket

    omni = DuplexOmni("openbmb/MiniCPM-o-4_5")
    engine = omni.engine = Engine(answer_units)

    async def route():
        while True:
            omni._route_engine_message(await engine.events.get())

    routing = asyncio.create_task(route())
    handler = OmniDuplexSessionHandler(duplex_omni=omni)
    app = FastAPI()

    async def realtime(socket):
        await handler.handle_realtime_session(socket)

    realtime.__annotations__ = {"socket": WebSocket}
    app.websocket("/v1/realtime")(realtime)

    @app.get("/health")
    def health():
        return {"ok": True}

    await uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", ws_max_size=1 << 26)
    ).serve()
    routing.cancel()


if __name__ == "__main__":
    units = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    asyncio.run(main(int(sys.argv[1]), units))
