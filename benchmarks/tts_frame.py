"""What a frame of Qwen3-TTS costs, and what a listener hears of it: all ratios of one run.

    python benchmarks/tts_frame.py [--model FOLDER] [--device cuda:0] [--json FILE]

Without --model a snapshot of the 0.6B shapes with random weights is made in a temporary folder.
A frame is talker step, code predictor (15 passes), codec and the copy of its samples to the host,
with the read-backs that the server makes. Each stage prints one line when it is done, and --json
is written after each, so that a run that is cut short has shown what it did.

- frame: the plain path, captured graphs, and stock qwen-tts without codec; codes against the plain
  path; first sound from nothing, prompt included
- sessions: a step of N = 1, 2, 4, 8 utterances, real-time factor of each, and whether the codes of
  one depend on the others or on N
- speech: 40 tokens, one each 80 ms, through the real socket: gaps, first sound, padded steps
- device: codes on the last CUDA device while another one is current
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import numpy as np
import torch
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from hfd.errors import run_cli
from hfd.models.tts.loading import load_model
from hfd.models.tts.protocol import FRAME_S, PATH
from hfd.models.tts.server import Offer, TtsServer
from hfd.models.tts.speech import Manner, Move
from hfd.models.tts.talker import QwenVoice
from make_tts_random import FULL, TINY, make_snapshot

TEXT = "One text token for each frame, as they come from the other server. "
PART_FRAMES = 60
AGREE_FRAMES = 50
SPEECH_TOKENS = 40


def manner(seed: int) -> Manner:
    return Manner("ryan", "english", seed)


def move(voice: QwenVoice, number: int, offset: int = 0) -> Move:
    """The next token of an endless text; no frame is the last."""
    tokens = voice.tokens(TEXT)
    return Move(tokens[(number + offset) % len(tokens)], may_end=False)


def timed(work: Callable[[], Any]) -> float:
    """Milliseconds of `work` with all its device work done."""
    synchronise()
    began = time.perf_counter()
    work()
    synchronise()
    return (time.perf_counter() - began) * 1000


def synchronise() -> None:
    if torch.cuda.is_available():
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)


def summary(times_ms: Sequence[float]) -> dict[str, float]:
    p50, p99 = np.percentile(times_ms, [50, 99])
    return {
        "n": len(times_ms),
        "median_ms": round(float(p50), 2),
        "mean_ms": round(float(np.mean(times_ms)), 2),
        "p99_ms": round(float(p99), 2),
        "max_ms": round(max(times_ms), 2),
    }


def open_all(voice: QwenVoice, count: int) -> None:
    """Begin an utterance of its own in each of the first slots, and make its first frame."""
    for slot in range(count):
        voice.begin(slot, voice.tokens(TEXT)[slot], manner(11 + slot))
    voice.step(dict.fromkeys(range(count)))
    for slot in range(count):
        voice.pcm(slot, 1)


def time_frames(voice: QwenVoice, sessions: int, count: int, chunk: int) -> dict[str, float]:
    """Time of a frame of all sessions, with their sound in chunks of `chunk` frames."""
    open_all(voice, sessions)
    times = []
    for group in range(count // chunk):

        def whole(group: int = group) -> None:
            for number in range(group * chunk, group * chunk + chunk):
                voice.step({slot: move(voice, number, slot) for slot in range(sessions)})
            for slot in range(sessions):
                voice.pcm(slot, chunk)

        times.append(timed(whole) / chunk)
    return summary(times)


def first_sound(voice: QwenVoice, count: int) -> dict[str, float]:
    """From nothing to the first 80 ms, prompt included."""

    def start() -> None:
        voice.begin(0, voice.tokens(TEXT)[0], manner(11))
        voice.step({0: None})
        voice.pcm(0, 1)

    start()
    return summary([timed(start) for _ in range(count)])


def time_parts(voice: QwenVoice) -> dict[str, Any]:
    """The parts of a frame one by one."""
    open_all(voice, 1)
    with torch.inference_mode():
        steps = {
            "prompt": voice._opening,
            "talker_step": voice._advance[voice._reads[0]],
            "code_predictor": voice._complete,
            **{f"codec_{size}": step for size, step in voice._codec._steps.items()},
        }
        return {
            name: summary([timed(step) for _ in range(PART_FRAMES)]) for name, step in steps.items()
        }


def codes(voice: QwenVoice, sessions: Sequence[int], count: int) -> dict[int, torch.Tensor]:
    """Codes of the first frames of seeded utterances: [count, groups] for each slot."""
    for slot in sessions:
        voice.begin(slot, voice.tokens(TEXT)[slot], manner(11 + slot))
    heard: dict[int, list[torch.Tensor]] = {slot: [] for slot in sessions}
    for number in range(count):
        moves = {slot: move(voice, number, slot) if number else None for slot in sessions}
        voice.step(moves)
        for slot in sessions:
            heard[slot].append(voice._codes[slot].cpu().clone())
    return {slot: torch.stack(frames) for slot, frames in heard.items()}


def agreement(one: torch.Tensor, other: torch.Tensor) -> dict[str, Any]:
    """Share of equal codes, and the first frame that differs."""
    differs = (one != other).any(1).nonzero()
    return {
        "equal": round((one == other).float().mean().item(), 4),
        "first_difference": int(differs[0]) if len(differs) else None,
    }


@torch.inference_mode()
def stock(model: Any, count: int) -> dict[str, Any]:
    """qwen-tts's own step: talker.forward with the code predictor through generate."""
    talker = model.talker
    weight = talker.codec_head.weight
    size = talker.config.hidden_size
    prompt = torch.randn(1, 10, size).to(weight)
    out = talker(inputs_embeds=prompt, use_cache=True)
    text = torch.randn(1, 1, size).to(weight)
    times = []

    def step() -> None:
        nonlocal out
        out = talker(
            input_ids=out.logits[:, -1:, :2048].argmax(-1),
            past_key_values=out.past_key_values,
            past_hidden=out.past_hidden,
            generation_step=0,
            trailing_text_hidden=text,
            tts_pad_embed=text,
            use_cache=True,
            subtalker_dosample=True,
            subtalker_top_k=50,
            subtalker_top_p=1.0,
            subtalker_temperature=0.9,
        )

    for _ in range(count):
        times.append(timed(step))
    return summary(times[3:])


async def speak(voice: QwenVoice, sessions: int, emit: list[int]) -> dict[str, Any]:
    """Several clients of the real socket, each with a token every 80 ms."""
    server = TtsServer(Offer(voice, {}, ("ryan",), ("english",)))
    async with serve(server._connection, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        heard = await asyncio.gather(
            *(_client(port, number * 0.31, emit) for number in range(sessions))
        )
    gaps = [gap for one in heard for gap in one["gaps_ms"]]
    return {
        "sessions": sessions,
        "emit": emit,
        "first_sound_ms": [round(one["first_ms"], 1) for one in heard],
        "chunks": len(gaps) + sessions,
        "gaps": sum(gap > 0 for gap in gaps),
        "gaps_over_20_ms": sum(gap > 20 for gap in gaps),
        "longest_gap_ms": round(max(gaps), 2),
        "pad_steps": [one["done"]["pad_steps"] for one in heard],
        "frames": [one["done"]["frames"] for one in heard],
        "eos": sorted({one["done"]["eos"] for one in heard}),
    }


async def _client(port: int, wait_s: float, emit: list[int]) -> dict[str, Any]:
    await asyncio.sleep(wait_s)
    async with connect(f"ws://127.0.0.1:{port}{PATH}", proxy=None) as socket:
        config = {"type": "session.config", "emit_every_frames": emit}
        await socket.send(json.dumps(config))
        await socket.recv()
        writer = asyncio.create_task(_write(socket))
        began = time.perf_counter()
        first_ms: float | None = None
        until = 0.0
        gaps: list[float] = []
        done: dict[str, Any] = {}
        while True:
            message = json.loads(await socket.recv())
            if message["type"] == "audio.chunk":
                await socket.recv()
                now = time.perf_counter() - began
                if first_ms is None:
                    first_ms = now * 1000
                else:
                    gaps.append(max(0.0, now - until) * 1000)
                until = max(until, now) + message["frames"] * FRAME_S
            elif message["type"] == "audio.done":
                done = message
            elif message["type"] == "session.done":
                await writer
                return {"first_ms": first_ms, "gaps_ms": gaps, "done": done}


async def _write(socket: Any) -> None:
    began = time.perf_counter()
    for seq in range(SPEECH_TOKENS):
        await asyncio.sleep(max(0.0, began + seq * 0.08 - time.perf_counter()))
        message = {"type": "input.text", "seq": seq, "text": TEXT[seq % len(TEXT)]}
        await socket.send(json.dumps(message))
    await socket.send(json.dumps({"type": "input.done"}))


class Report:
    """Lines on stdout, and a JSON file that is written after each."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._began = path, time.perf_counter()
        self._stages: dict[str, Any] = {}

    def stage(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a stage; one that fails is a line, and the run goes on."""
        try:
            found = work()
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {str(error)[:2000]}"}
        self._stages[name] = found
        seconds = time.perf_counter() - self._began
        print(f"{seconds:6.1f} s  {name:22} {json.dumps(found)}", flush=True)
        if self._path:
            self._path.write_text(json.dumps(self._stages, indent=2) + "\n")
        return found


class Bench:
    """The stages over one loaded model."""

    def __init__(self, model: Any, tokenizer: Any, arguments: argparse.Namespace) -> None:
        self._model, self._tokenizer, self._arguments = model, tokenizer, arguments
        self._captured = arguments.device.startswith("cuda")
        self._voices: dict[int, QwenVoice] = {}
        self._plain_codes = self._codes_1 = torch.zeros(0)

    def plain(self) -> dict[str, Any]:
        voice = QwenVoice(self._model, self._tokenizer, captured=False)
        self._plain_codes = codes(voice, [0], AGREE_FRAMES)[0]
        return {
            "frame": time_frames(voice, 1, self._arguments.plain_frames, 1),
            "first_sound": first_sound(voice, 3),
        }

    def make(self, slots: int) -> tuple[QwenVoice, float]:
        """A voice with so many slots, kept for later stages, and the seconds until it was ready."""
        began = time.perf_counter()
        if slots not in self._voices:
            self._voices[slots] = QwenVoice(
                self._model, self._tokenizer, captured=self._captured, slots=slots
            )
        return self._voices[slots], round(time.perf_counter() - began, 1)

    def captured(self) -> dict[str, Any]:
        voice, ready_s = self.make(1)
        self._codes_1 = codes(voice, [0], AGREE_FRAMES)[0]
        count = self._arguments.frames
        return {
            "ready_s": ready_s,
            "frame": time_frames(voice, 1, count, 1),
            "frame_in_chunks_of_4": time_frames(voice, 1, count, 4),
            "first_sound": first_sound(voice, 20),
            "parts": time_parts(voice),
            "codes_as_plain": agreement(self._codes_1, self._plain_codes),
        }

    def sessions(self, count: int) -> dict[str, Any]:
        voice, ready_s = self.make(count)
        together = codes(voice, range(count), AGREE_FRAMES)
        alone = {slot: codes(voice, [slot], AGREE_FRAMES)[slot] for slot in {0, count - 1}}
        frame = time_frames(voice, count, self._arguments.frames // 4, 1)
        chunked = time_frames(voice, count, self._arguments.frames // 4, 4)
        return {
            "ready_s": ready_s,
            "frame_of_all": frame,
            "frame_of_all_in_chunks_of_4": chunked,
            "rtf_per_session": round(frame["mean_ms"] / 80, 4),
            "rtf_per_session_in_chunks_of_4": round(chunked["mean_ms"] / 80, 4),
            "as_if_alone": all(torch.equal(together[s], c) for s, c in alone.items()),
            "as_with_one_slot": agreement(together[0], self._codes_1),
        }

    def speech(self, sessions: int, emit: list[int]) -> dict[str, Any]:
        return asyncio.run(speak(self._voices[sessions], sessions, emit))

    def other_device(self, folder: Path) -> dict[str, Any]:
        """The same codes on the last device, while the first is the current one."""
        device = f"cuda:{torch.cuda.device_count() - 1}"
        model, tokenizer = load_model(folder, device)
        voice = QwenVoice(model, tokenizer, captured=True)
        found = codes(voice, [0], AGREE_FRAMES)[0]
        return {
            "device": device,
            "current": torch.cuda.current_device(),
            "codes": agreement(found, self._codes_1),
            "different_frames": len(found.unique(dim=0)),
            "frame": time_frames(voice, 1, 100, 1),
        }


def run(folder: Path, arguments: argparse.Namespace) -> None:
    report = Report(arguments.json)
    model, tokenizer = load_model(folder, arguments.device)
    on_cuda = arguments.device.startswith("cuda")
    bench = Bench(model, tokenizer, arguments)
    machine = {
        "device": torch.cuda.get_device_name(arguments.device) if on_cuda else arguments.device,
        "torch": torch.__version__,
        "talker_parameters": sum(p.numel() for p in model.talker.parameters()),
    }
    report.stage("machine", lambda: machine)
    report.stage("frame stock", lambda: stock(model, 15))
    report.stage("frame plain", bench.plain)
    report.stage("frame captured", bench.captured)
    report.stage("speech 1", lambda: bench.speech(1, [1]))
    report.stage("speech 1 growing", lambda: bench.speech(1, [1, 2, 4]))
    for count in arguments.sessions:
        report.stage(f"sessions {count}", partial(bench.sessions, count))
    most = max(arguments.sessions)
    report.stage(f"speech {most}", lambda: bench.speech(most, [1]))
    report.stage(f"speech {most} growing", lambda: bench.speech(most, [1, 2, 4]))
    if on_cuda:
        report.stage("other device", lambda: bench.other_device(folder))


def main(argv: list[str] | None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="snapshot (default: random 0.6B shapes)")
    parser.add_argument("--tiny", action="store_true", help="random tiny shapes, to try the script")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--frames", type=int, default=400, help="captured frames to time")
    parser.add_argument("--plain-frames", type=int, default=30, help="plain frames to time")
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.model or make_snapshot(
            Path(scratch) / "random", TINY if arguments.tiny else FULL
        )
        run(folder, arguments)


if __name__ == "__main__":
    run_cli(main)
