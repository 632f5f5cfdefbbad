"""How a token is drawn from logits, on the device and without asking the CPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sampling:
    """Repetition penalty, temperature, top-k and top-p, in the order of transformers' processors.

    Attributes:
        temperature: 0 takes the most likely token.
        top_k: at most so many tokens may come.
        top_p: the most likely tokens that together have this share may come.
        repetition_penalty: makes tokens that were seen less likely; 1 does nothing.
    """

    temperature: float
    top_k: int
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def pick(
        self,
        logits: torch.Tensor,
        draw: torch.Tensor,
        seen: torch.Tensor | None = None,
        banned: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """One token for each row, int64 [...].

        Args:
            logits: float32 [..., vocabulary].
            draw: in [0, 1), [...]; picks from the cumulated probabilities of the kept tokens.
            seen: bool [..., vocabulary], tokens that the repetition penalty applies to.
            banned: bool [..., vocabulary], tokens that may not come.
        """
        if seen is not None:
            logits = self.punish(logits, seen)
        if banned is not None:
            logits = logits.masked_fill(banned, -torch.inf)
        if self.greedy:
            return logits.argmax(-1)
        top, tokens = torch.topk(logits / self.temperature, min(self.top_k, logits.shape[-1]))
        share = torch.softmax(top, dim=-1)
        kept = share.cumsum(-1)
        if self.top_p < 1:
            kept = torch.where(kept - share < self.top_p, share, 0).cumsum(-1)
        place = (kept <= draw[..., None] * kept[..., -1:]).sum(-1, keepdim=True)
        place = place.clamp(max=tokens.shape[-1] - 1)
        return tokens.gather(-1, place)[..., 0]

    def punish(self, logits: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """The logits after the repetition penalty, both [..., vocabulary]."""
        penalty = self.repetition_penalty
        punished = torch.where(logits < 0, logits * penalty, logits / penalty)
        return torch.where(seen, punished, logits)
