"""ROMA's prompt format: the turns between which one-second units are fed.

Silence is nothing: units of a silent stretch stand back to back in one open user turn. A reply
closes that turn, is an assistant turn of its own, and opens the next user turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

STREAMING_MIX = (
    "You are an assistant that receives streaming multimodal inputs. You must continuously monitor"
    " the synchronized video and audio each second and respond at the appropriate time. Provide"
    " answers to the audio query based on the visual context at the right moment.\n"
    "    [narration time] 1. You should only predict a response when an event transition occurs,"
    " and at that moment summarize the previous event. After responding, you must not predict"
    " another response until the next event transition.\n"
    "    [narration content] 2. When a response is required, follow the instructions and give a"
    " concise summary of the most recent event that just occurred.\n"
    "    [proactive alert] 1. Only when the condition described in the user's audio instruction is"
    " actually satisfied in the current video/audio input are you allowed to speak; otherwise you"
    ' must output exactly "no".\n'
    "    [proactive alert] 2. When the condition is satisfied, if the instruction specifies an"
    " explicit response you must output that exact content, otherwise you must output exactly"
    ' "alert".\n'
    "    "
)
"""System prompt of the template ``streaming_mix`` (Eureka-Maggie/ROMA at e5bced6,
src/llamafactory/data/template.py). It is an input format: every blank counts, also at the end."""


class Tokenizer(Protocol):
    """The two calls of a Hugging Face tokenizer that the runner uses."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...
    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str: ...


@dataclass(frozen=True)
class Turns:
    """Token ids of everything between the units.

    Attributes:
        opening: system turn and the head of the first user turn.
        to_assistant: closes the user turn, opens the assistant's.
        close_ended: closes a piece with which the answer ended, opens the next user turn.
        close_cut: the same for a piece that is to be continued: cut at its token limit, or ended
            by the model with `pause`.
        end: the id that ends an answer.
        pause: the id that ends a piece of an answer; training cuts long answers with it.
    """

    opening: list[int]
    to_assistant: list[int]
    close_ended: list[int]
    close_cut: list[int]
    end: int
    pause: int

    @property
    def reply(self) -> int:
        """Most tokens that surround one piece of text."""
        return len(self.to_assistant) + max(len(self.close_ended), len(self.close_cut))


def make_turns(tokenizer: Tokenizer, system_prompt: str | None) -> Turns:
    """The turns of one snapshot's tokenizer; `system_prompt` None means `STREAMING_MIX`."""

    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    system = STREAMING_MIX if system_prompt is None else system_prompt
    user = "<|im_start|>user\n"
    return Turns(
        opening=ids(f"<|im_start|>system\n{system}<|im_end|>\n{user}"),
        to_assistant=ids("<|im_end|>\n<|im_start|>assistant\n"),
        close_ended=ids(f"<|im_end|>\n{user}"),
        close_cut=ids(f"<|endoftext|><|im_end|>\n{user}"),
        end=ids("<|im_end|>")[0],
        pause=ids("<|endoftext|>")[0],
    )


class TextStream:
    """Turns token ids into text deltas that are never taken back.

    A character that spans tokens (most Chinese ones may) leaves with its last token, also where
    that one belongs to a later piece of the answer.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._sent = ""

    def add(self, token: int) -> str:
        """Take one token; give the characters that have become final, perhaps none."""
        self._ids.append(token)
        return self._delta(self._text().rstrip("\ufffd"))

    def end(self) -> str:
        """Give what an unfinished character left over."""
        return self._delta(self._text())

    def _text(self) -> str:
        return self._tokenizer.decode(self._ids, skip_special_tokens=True)

    def _delta(self, text: str) -> str:
        if not text.startswith(self._sent):
            return ""
        delta = text[len(self._sent) :]
        self._sent = text
        return delta
