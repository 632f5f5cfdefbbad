"""What the thinker's engine is told, against what the authors' own client tells it.

``engine_prompts.json`` holds hashes that were captured from their client and servers
(tests/peers/test_duplexomni.py, which also compares them anew).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.fakes.duplexomni import Thinker

CAPTURED = json.loads(Path(__file__).with_name("engine_prompts.json").read_text("utf-8"))
PLACEHOLDERS = {
    "input_audio": "<|audio_start|><|audio_pad|><|audio_end|>",
    "image_url": "<|vision_start|><|image_pad|><|vision_end|>",
}


def chat_ml(messages):
    """The engine's prompt for a request, as the authors' server makes it with ChatML."""

    def content(parts):
        if isinstance(parts, str):
            return parts
        return "".join(part.get("text") or PLACEHOLDERS[part["type"]] for part in parts)

    said = "".join(
        f"<|im_start|>{m['role']}\n{content(m['content'])}<|im_end|>\n" for m in messages
    )
    return said + "<|im_start|>assistant\n"


def test_the_engines_prompts_are_those_of_the_authors_client_slice_by_slice(servers, converse):
    thinker = servers(Thinker, lambda index, _: CAPTURED["replies"][index])
    converse(thinker)
    hashes = [
        hashlib.sha256(chat_ml(request.messages).encode()).hexdigest()
        for request in thinker.requests
    ]
    assert hashes == CAPTURED["sha256"]
