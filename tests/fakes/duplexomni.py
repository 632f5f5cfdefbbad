"""Reference thinker and talker: the authors' HTTP, headers and blob, with an answer that can be
computed beforehand. Tests only; standard library and numpy.

The thinker's answer depends on a hash of everything it was sent, so anything that leaks from the
future or gets lost from the past changes it. Slice i's sound is the constant ``tone(i)``.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
import time
import wave
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from tests.fakes.torch_archive import first_storage, torch_archive

SLICE_OUT = 11520
TALKER_OUT = 11520 - 555
"""What the real talker makes of six frames (Hugging Face's Code2Wav; tests/peers shows it)."""
WARM_UP = "hfd-warm-up-"
"""Sessions that begin so are the runner's warm-up turns; they are counted apart."""
MODEL = "/weights/duplexomni"


def tone(index: int) -> int:
    """The int16 value of slice `index`; audible, different for every slice."""
    return 100 + 10 * index


def dict_text(
    tts: str = "", asr: str = "", tts_control: str = "", system2_control: str = ""
) -> str:
    """The model's answer in its usual form."""
    return json.dumps(
        {"tts_control": tts_control, "system2_control": system2_control, "asr": asr, "tts": tts},
        ensure_ascii=False,
    )


def hashed_answer(index: int, messages: list[dict[str, Any]]) -> str:
    """Words that depend on every byte of the history."""
    digest = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()
    return dict_text(tts=f"<{index}:{digest[:8]}>")


@dataclass
class Request:
    """What one thinker request held."""

    messages: list[dict[str, Any]]
    wav: bytes
    picture: bytes | None
    command: str
    size: int


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up in mid-answer is no news."""


class _Server(ABC):
    """A server in a thread; `busy_s` is the time spent in each POST, reading it included."""

    def __init__(self, port: int = 0) -> None:
        self.busy_s: list[float] = []
        self._http = _QuietServer(("127.0.0.1", port), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def die(self) -> None:
        """Refuse every connection from now on."""
        self._http.shutdown()
        self._http.server_close()

    def wait(self) -> None:
        self._thread.join()

    def get(self, path: str) -> dict[str, Any]:
        return {"ok": True}

    @abstractmethod
    def post(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        """Answer, or None to break the connection without one."""

    def delete(self, path: str) -> None:
        pass


def _handler(owner: _Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = {"busy_s": owner.busy_s} if self.path == "/busy" else owner.get(self.path)
            self._send(200, {}, json.dumps(answer).encode())

        def do_DELETE(self) -> None:
            owner.delete(self.path)
            self._send(200, {}, b"{}")

        def do_POST(self) -> None:
            began = time.perf_counter()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = owner.post(self.path, body)
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            self._send(*answer)
            owner.busy_s.append(time.perf_counter() - began)

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class Thinker(_Server):
    """The thinker's ``/internal/chat_turn``.

    Args:
        answer: the text for a slice, from its number and all messages.
        delay_s: compute of a slice.
        max_model_len: what /health claims.
    """

    def __init__(
        self,
        answer: Callable[[int, list[dict[str, Any]]], str] = hashed_answer,
        *,
        delay_s: Callable[[int], float] = lambda index: 0.0,
        max_model_len: int = 65536,
        session: Callable[[str], str] = lambda session: session,
        blob: Callable[[int, bytes], bytes] = lambda index, blob: blob,
        die_at: int | None = None,
        fail: Callable[[int, int], tuple[int, str] | None] = lambda index, attempt: None,
        light: bool = False,
        port: int = 0,
        model: str = MODEL,
    ) -> None:
        self.answer, self.delay_s, self.max_model_len = answer, delay_s, max_model_len
        self.session, self.blob, self.die_at, self.fail = session, blob, die_at, fail
        self.light, self.model = light, model
        self.requests: list[Request] = []
        self.posts = 0
        self.warm_ups = 0
        self.dead = False  # as with an engine that died behind its HTTP server
        super().__init__(port)

    def get(self, path: str) -> dict[str, Any]:
        return {
            "ok": True,
            "model": self.model,
            "max_model_len": self.max_model_len,
            "tensor_parallel_size": 4,
        }

    def _warm_up(self, payload: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if self.dead:
            return 500, {}, b"Internal Server Error"
        self.warm_ups += 1
        _checked(payload["messages"], 0)
        blob = thinker_blob(payload["session_id"], dict_text(), 0, 100)
        return 200, {"X-Thinker-Session-Id": payload["session_id"]}, blob

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        assert path == "/internal/chat_turn"
        if WARM_UP.encode() in body[:400]:
            return self._warm_up(json.loads(body))
        self.posts += 1
        if self.dead:
            return 500, {}, b"Internal Server Error"
        if self.light:  # benchmarks: do not parse megabytes
            index = len(self.requests)
            self.requests.append(Request([], b"", None, "", len(body)))
            session, messages = body[:400].split(b'"session_id":"')[1].split(b'"')[0].decode(), []
        else:
            payload = json.loads(body)
            messages, session = payload["messages"], payload["session_id"]
            if payload["model"] != self.model:
                return 400, {}, _detail(f"model must be exactly {self.model}")
            index = sum(message["role"] == "user" for message in messages) - 1
        if index == self.die_at:
            threading.Thread(target=self.die).start()
            return None
        if failure := self.fail(index, self.posts):
            return failure[0], {}, _detail(failure[1])
        if not self.light:
            self.requests.append(_checked(messages, len(body)))
        time.sleep(self.delay_s(index))
        text = self.answer(index, messages)
        session = self.session(session)
        blob = self.blob(index, thinker_blob(session, text, index, len(body) // 1000))
        return 200, {"X-Thinker-Session-Id": session, "X-Thinker-Text-Len": str(len(text))}, blob


@dataclass
class Heard:
    """One talker turn."""

    session: str
    index: int


class Talker(_Server):
    """The talker's ``/internal/talker/turn/{session}``.

    Args:
        silent: whether a slice yields no sound (204).
        delay_s: compute of a slice.
        samples: length of a slice's sound.
    """

    def __init__(
        self,
        *,
        silent: Callable[[int], bool] = lambda index: False,
        delay_s: Callable[[int], float] = lambda index: 0.0,
        samples: int = TALKER_OUT,
        die_at: int | None = None,
        port: int = 0,
    ) -> None:
        self.silent, self.delay_s, self.samples, self.die_at = silent, delay_s, samples, die_at
        self.heard: list[Heard] = []
        self.forgotten: list[str] = []
        super().__init__(port)

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        session = path.removeprefix("/internal/talker/turn/")
        if session.startswith(WARM_UP):
            return 204, {"X-Talker-Meta": "{}"}, b""
        index = int(np.frombuffer(first_storage(body), np.float16)[0])
        if index == self.die_at:
            threading.Thread(target=self.die).start()
            return None
        self.heard.append(Heard(session, index))
        time.sleep(self.delay_s(index))
        silent = self.silent(index)
        meta = {"valid_turn": not silent, "eos_emitted": True, "layer0_steps": 5 if silent else 6}
        headers = {"X-Talker-Meta": json.dumps(meta)}
        if silent:
            return 204, headers, b""
        sound = np.full(self.samples, tone(index), "<i2").tobytes()
        return 200, {**headers, "Content-Type": "audio/wav"}, _wav(sound)

    def delete(self, path: str) -> None:
        session = path.removeprefix("/v1/talker/session/")
        if not session.startswith(WARM_UP):
            self.forgotten.append(session)


def thinker_blob(session: str, text: str, index: int, prompt_tokens: int) -> bytes:
    """The authors' payload; the tensors' first number is the slice."""
    ids = [ord(letter) % 1000 for letter in text]
    rows = np.zeros((max(1, len(ids) - 1), 8), np.float16)
    rows[0, 0] = index
    return torch_archive(
        {
            "session_id": session,
            "request_id": f"chatcmpl-{index}",
            "generated_token_ids": ids[:-1],
            "completion_token_ids_full": ids,
            "response": {
                "id": f"chatcmpl-{index}",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {
                    "prompt_tokens": prompt_tokens,
                    "completion_tokens": len(ids),
                    "total_tokens": prompt_tokens + len(ids),
                },
            },
            "text": text,
            "turns": [{"turn_index": 0, "top_hidden_state": rows, "text_embedding": rows * 1}],
        }
    )


def _checked(messages: list[dict[str, Any]], size: int) -> Request:
    """The last slice of a request whose form is the authors' (asserted)."""
    roles = [message["role"] for message in messages]
    slices = len(roles) // 2
    assert roles == ["system", *["user", "assistant"] * (slices - 1), "user"], roles
    parts = messages[-1]["content"]
    kinds = [part["type"] for part in parts]
    assert kinds in (
        ["text", "input_audio", "text"],
        ["text", "input_audio", "text", "image_url", "text"],
    )
    texts = [part["text"] for part in parts if part["type"] == "text"]
    assert texts[0] == "{'audio_input': '" and texts[-1].endswith("'}")
    command = texts[1].removeprefix("', 'from_s2': '").partition("'")[0]
    sound = parts[1]["input_audio"]
    assert sound["format"] == "wav"
    picture = None
    if len(parts) == 5:
        assert texts[1].endswith("', 'input_video': '")
        picture = base64.b64decode(parts[3]["image_url"]["url"].partition("base64,")[2])
    return Request(messages, base64.b64decode(sound["data"]), picture, command, size)


def _wav(pcm: bytes) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24000)
        file.writeframes(pcm)
    return out.getvalue()


def _detail(words: str) -> bytes:
    return json.dumps({"detail": words}).encode()
