"""How long a file the model has room for: its positions, and the slots of caches made once.

Nothing is ever cropped to make a file fit. What can be known before the first second is refused
there, by name; what depends on how much the model says ends the sample with an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hfd.duplex.model import SampleInfo
from hfd.errors import HfdError
from hfd.models.roma.prompt import Turns
from hfd.models.roma.settings import Settings
from hfd.models.roma.unit import AUDIO_TOKENS, MARKS, POSITIONS_PER_UNIT, Grid

ORDINARY_UNIT = 117
"""Tokens of a unit for which caches are made: that of 4:3 video frames, the largest of all common
shapes. Strips need up to 158, and so more slots a second."""
IN_FLIGHT = 2
"""Codes launched ahead of the code that is read, so that a GPU never waits for the stop test."""
WORK_BYTES = 7.5e9
"""What graphs and their scratch memory took beside weights and caches (docs/performance.md)."""
FURTHER_BYTES = 1.2e9
"""The same for each session after the first: most scratch memory is used again by the next."""


@dataclass(frozen=True)
class Room:
    """What the positions and the caches of one loaded model hold.

    Attributes:
        settings: the runner's settings.
        turns: the prompt's parts.
        positions: position ids that the model was made for.
        slots: tokens that the caches hold, or None for caches that grow.
    """

    settings: Settings
    turns: Turns
    positions: int
    slots: int | None

    def check(self, sample: SampleInfo, grid: Grid) -> None:
        """Refuse a file that cannot be taken whole.

        Raises:
            HfdError: it is longer than `max_media_s`, than the positions or than the caches.
        """
        seconds, unit = math.ceil(sample.media_s), grid.tokens + AUDIO_TOKENS + MARKS
        if sample.media_s > self.settings.max_media_s:
            raise HfdError(
                f"is {sample.media_s:.1f} s long, longer than max_media_s"
                f" ({self.settings.max_media_s:g} s)",
                file=sample.sample_id,
                remedy="Raise settings.max_media_s (at most 1200 s, the model's position range)",
            )
        positions = len(self.turns.opening) + POSITIONS_PER_UNIT * seconds
        if positions > self.positions:
            raise HfdError(
                f"needs {positions} positions for its {seconds} s and the prompt; the model has"
                f" {self.positions}",
                file=sample.sample_id,
                remedy="Leave it out for this model, or shorten settings.system_prompt",
            )
        slots = context_slots(self.settings, self.turns, self.positions, sample.media_s, unit)
        if self.slots is not None and slots > self.slots:
            raise HfdError(
                f"is {sample.media_s:.1f} s of {sample.width} x {sample.height} frames, {unit}"
                f" tokens a second: up to {slots} tokens, the caches hold {self.slots}",
                file=sample.sample_id,
                remedy="Raise settings.max_media_s (the caches are made for it)",
            )

    def check_position(self, last: int, now_s: float) -> None:
        """Stop at the end of the position range.

        Raises:
            HfdError: `last`, the position of a token to be read after `now_s`, lies beyond.
        """
        if last >= self.positions:
            raise HfdError(
                f"has used up the model's {self.positions} positions at media second {now_s:g}",
                remedy="The file is too long for what the model says in it; nothing is cropped",
            )


def context_slots(
    settings: Settings,
    turns: Turns,
    positions: int,
    media_s: float | None = None,
    unit: int = ORDINARY_UNIT,
) -> int:
    """Most tokens that the thinker can read and write in a file.

    Args:
        settings, turns: what is said per second at most.
        positions: the model's range; every token of text takes one.
        media_s: length of the file; None is `max_media_s`.
        unit: tokens of one of its seconds.
    """
    seconds = math.ceil(settings.max_media_s if media_s is None else media_s)
    text = seconds * (settings.text_tokens_per_s + turns.reply) + settings.tail_tokens + turns.reply
    left = positions - len(turns.opening) - POSITIONS_PER_UNIT * seconds
    return len(turns.opening) + seconds * unit + max(0, min(text, left))


def speech_slots(settings: Settings) -> int:
    """Slots that a run of codes needs behind the talker's context."""
    return 2 + settings.max_codes + IN_FLIGHT


def most_positions(config: Any) -> int:
    """Position range of thinker and talker, from upstream's config object."""
    return min(
        config.thinker_config.text_config.max_position_embeddings,
        config.talker_config.max_position_embeddings,
    )


def memory_need(
    config: Any, settings: Settings, turns: Turns, number_bytes: int, sessions: int
) -> float:
    """Bytes that sessions take on a GPU beside the weights: they follow `max_media_s`."""
    context = context_slots(settings, turns, most_positions(config))
    caches = cache_bytes(config, context, speech_slots(settings), number_bytes)
    return WORK_BYTES + (sessions - 1) * FURTHER_BYTES + sessions * caches


def cache_bytes(config: Any, context: int, speech: int, number_bytes: int) -> int:
    """Bytes of keys and values: `context` slots in both models, `speech` more in the talker."""

    def per_slot(part: Any) -> int:
        width = getattr(part, "head_dim", None) or part.hidden_size // part.num_attention_heads
        return 2 * part.num_hidden_layers * part.num_key_value_heads * width * number_bytes

    thinker, talker = config.thinker_config.text_config, config.talker_config
    return context * per_slot(thinker) + (context + speech) * per_slot(talker)
