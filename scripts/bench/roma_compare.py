"""How far the accelerated path is from the plain one: tokens, codes and sound."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from roma_bench import Bench

from hfd.models.roma.acceleration import make_steps
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings, parse_settings
from hfd.models.roma.vocoder import Vocoder, block_noise


def compare(parts: Parts, settings: Settings, seconds: int) -> dict[str, Any]:
    """Greedy tokens and codes of both implementations from one context.

    After a difference both go on from the plain path's choice, so each difference stands alone. It
    is listed with its number, both choices, how far the plain path's logits of the two lie apart,
    and the largest distance between the two paths' logits at that step: a tie within rounding is
    one whose lead is smaller than what rounding moved.
    """
    greedy = parse_settings({**vars(settings), "temperature": 0.0})
    with (
        last_output(parts, parts.model.thinker.lm_head) as tokens_at,
        last_output(parts, parts.model.talker.codec_head) as codes_at,
    ):
        plain, fast = (Bench(parts, greedy, kind) for kind in ("eager", "graphs"))
        for bench in (plain, fast):
            bench.fill(seconds)
        found, states = compare_tokens(plain, fast, tokens_at)
        return found | compare_codes(plain, fast, states, codes_at)


def compare_tokens(plain: Bench, fast: Bench, logits: torch.Tensor):
    token, states, differences, distances = 5, [], [], []
    for number in range(50):
        wanted, state = plain.token(token)
        ours = logits.clone()
        got, _ = fast.token(token)
        distances.append(float((ours - logits).abs().max()))
        if got != wanted:
            lead = float(ours[wanted] - ours[got])
            differences.append([number, wanted, got, lead, distances[-1]])
        token = wanted
        states.append(state)
    return {
        "tokens": 50,
        "token_logits_apart": statistics.median(distances),
        "token_differences": differences,
    }, states


def compare_codes(plain: Bench, fast: Bench, states: list[torch.Tensor], logits: torch.Tensor):
    differences, distances, said = [], [], set()
    newest = {}
    opening = torch.stack(states[:2])
    for bench in (plain, fast):
        bench.steps.start_speech(opening, bench.position, torch.zeros(300))
        newest[bench.kind] = logits.clone()
    for number in range(200):
        wanted, got = plain.steps.read_code(), fast.steps.read_code()
        ours, theirs = newest["eager"], newest["graphs"]
        distances.append(float((ours - theirs).abs().max()))
        if got != wanted:
            lead = float(ours[wanted] - ours[got])
            differences.append([number, wanted, got, lead, distances[-1]])
            fast.steps._code.fill_(wanted)
            fast.steps._seen[wanted] = True
            fast.steps._seen[got] = got in said
        said.add(wanted)
        state = states[min(number + 2, len(states) - 1)]
        for bench in (plain, fast):
            bench.steps.next_code(state)
            newest[bench.kind] = logits.clone()
    return {
        "codes": 200,
        "distinct_codes": len(said),
        "code_logits_apart": statistics.median(distances),
        "code_differences": differences,
    }


@contextmanager
def last_output(parts: Parts, head: torch.nn.Linear) -> Iterator[torch.Tensor]:
    """The head's newest output; a graph captured inside the block writes it too."""
    newest = torch.zeros(head.out_features, device=parts.device)

    def keep(_: Any, __: Any, out: torch.Tensor) -> None:
        newest.copy_(out.flatten())

    hook = head.register_forward_hook(keep)
    try:
        yield newest
    finally:
        hook.remove()


def compare_sound(parts: Parts, settings: Settings) -> dict[str, float]:
    """Relative difference (RMS) of waves: chunked and one call, TF32 and float32, both paths."""
    top = parts.model.token2wav.code2wav_dit_model.config.num_embeds
    codes = torch.randint(0, top, (200,), generator=torch.Generator().manual_seed(1)).tolist()

    def wave(kind: str, tf32: bool, whole: bool, seed: int = 3) -> np.ndarray:
        chosen = parse_settings({**vars(settings), "acceleration": kind, "tf32": tf32})
        steps = make_steps(parts, chosen)
        vocoder = Vocoder(steps, block_noise(seed, 24, 80), 12, whole)
        for code in codes:
            vocoder.add(code)
        vocoder.end()
        return np.concatenate(vocoder.take())

    exact = wave("eager", False, True)

    def difference(other: np.ndarray) -> float:
        return float(np.sqrt(np.mean((other - exact) ** 2) / np.mean(exact**2)))

    return {
        "peak": float(np.abs(exact).max()),
        "whole, tf32": difference(wave("eager", True, True)),
        "chunked, float32": difference(wave("eager", False, False)),
        "chunked, tf32": difference(wave("eager", True, False)),
        "chunked, graphs, float32": difference(wave("graphs", False, False)),
        "chunked, graphs, tf32": difference(wave("graphs", True, False)),
        "another seed": difference(wave("eager", False, True, seed=4)),
    }
