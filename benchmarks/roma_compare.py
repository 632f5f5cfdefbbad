"""How far the accelerated path is from the plain one: tokens, codes and sound."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from hfd.models.roma.acceleration import make_steps
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings, parse_settings
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.vocoder import Vocoder, block_noise
from roma_bench import Bench, rgb


def compare(parts: Parts, settings: Settings, seconds: int) -> dict[str, Any]:
    """Greedy tokens and codes of both implementations from one context.

    All of them are fed what the plain path chose, so each difference stands alone. A third talker,
    plain and in float32, reads the same: how far the plain path's logits lie from its logits is
    what rounding alone moves. A difference is a tie within rounding if the plain path prefers its
    own code by no more than twice that.
    """
    greedy = parse_settings({**vars(settings), "temperature": 0.0, "tf32": False})
    exact_parts = in_float32(parts)
    with (
        last_output(parts, parts.model.thinker.lm_head) as tokens_at,
        last_output(parts, parts.model.talker.codec_head) as codes_at,
        last_output(parts, exact_parts.model.talker.codec_head) as exact_at,
    ):
        plain, fast = (Bench(parts, greedy, kind) for kind in ("eager", "graphs"))
        exact = EagerSteps(exact_parts, greedy)
        exact.begin(plain.second[1])
        while plain.position < 27 * seconds:
            hidden, positions = plain.read_unit()
            fast.read_unit()
            for steps in (plain.steps, fast.steps):
                steps.read_context(hidden, positions)
            exact.read_context(hidden.float(), positions)
        pictures = [bench.steps.shrink(rgb(bench.unit)).cpu() for bench in (plain, fast)]
        found, states = compare_tokens(plain, fast, tokens_at)
        found["pictures_equal"] = pictures[0].equal(pictures[1])
        talkers = {
            "plain": (plain.steps, codes_at),
            "graphs": (fast.steps, codes_at),
            "float32": (exact, exact_at),
        }
        return found | compare_codes(talkers, states, plain.position)


def in_float32(parts: Parts) -> Parts:
    """The same parts with a talker in float32."""
    model = parts.model
    talker = copy.deepcopy(model.talker).float()
    together = SimpleNamespace(thinker=model.thinker, talker=talker, token2wav=model.token2wav)
    return replace(parts, model=together)


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
        "token_logits_apart": spread(distances),
        "token_differences": differences,
    }, states


def compare_codes(
    talkers: dict[str, tuple[Any, torch.Tensor]], states: list[torch.Tensor], position: int
) -> dict[str, Any]:
    """200 codes of each talker, given by its steps and the place of its newest logits."""
    plain = talkers["plain"][0]
    logits, differences, said = {}, [], set()
    distances: dict[str, list[float]] = {"graphs": [], "float32": [], "graphs to float32": []}
    exact_differs = 0
    seen = plain._first_seen.clone()
    for name, (steps, newest) in talkers.items():
        like = talkers["float32"][0]._talker if name == "float32" else plain._talker
        opening = torch.stack(states[:2]).to(like.codec_head.weight.dtype)
        steps.start_speech(opening, position, torch.zeros(300))
        logits[name] = newest.clone()
    for number in range(200):
        codes = {name: steps.read_code() for name, (steps, _) in talkers.items()}
        distances["graphs"].append(apart(logits["plain"], logits["graphs"]))
        distances["float32"].append(apart(logits["plain"], logits["float32"]))
        distances["graphs to float32"].append(apart(logits["graphs"], logits["float32"]))
        wanted, got = codes["plain"], codes["graphs"]
        said.add(wanted)
        exact_differs += codes["float32"] != wanted
        if got != wanted:
            punished = plain._sampling.punish(logits["plain"], seen)
            lead = float(punished[wanted] - punished[got])
            differences.append([number, wanted, got, lead, distances["float32"][-1]])
        seen = plain._seen.clone()
        for steps, _ in talkers.values():
            follow(plain, steps)
        for name, (steps, newest) in talkers.items():
            state = states[(number + 2) % len(states)]
            steps.next_code(state.float() if name == "float32" else state)
            logits[name] = newest.clone()
    return {
        "codes": 200,
        "distinct_codes": len(said),
        "code_differences": differences,
        "ties": sum(lead <= 2 * error for *_, lead, error in differences),
        "float32_chooses_differently": exact_differs,
        "code_logits_apart": {name: spread(found) for name, found in distances.items()},
    }


def follow(leader: EagerSteps, steps: Any) -> None:
    """Make the leader's newest code and its past the other's."""
    steps._seen.copy_(leader._seen)
    if isinstance(steps, EagerSteps):
        steps._last = leader._last
    else:
        steps._code.copy_(leader._last)


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max())


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "max": max(values)}


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
