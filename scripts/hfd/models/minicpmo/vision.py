"""The vision encoder as one captured step, and a second's images prepared side by side.

Upstream's encoder is 27 layers of small kernels, and its images are prepared one after the other on
one core. What is captured is upstream's own `forward`, for the shapes that a file's frames have;
any other shape (a last second of fewer frames) takes upstream's way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from PIL import Image

from hfd.models.graphs.capture import Lane, Step


class CapturedEncoder:
    """Takes the place of `forward` of upstream's vision encoder.

    Attributes:
        is_capturing: whether a shape that was not seen before is captured; else it is not.
    """

    def __init__(self, encoder: Any, lane: Lane | None) -> None:
        self._upstream, self._lane = encoder.forward, lane
        self._steps: dict[tuple[Any, ...], tuple[dict[str, torch.Tensor], Step]] = {}
        self.is_capturing = False

    @torch.no_grad()
    def forward(
        self, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor | None = None, **more: Any
    ) -> Any:
        """See upstream: states of the patches [images, patches, hidden]."""
        from transformers.modeling_outputs import BaseModelOutput

        given = {"inputs_embeds": inputs_embeds}
        if attention_mask is not None:
            given["attention_mask"] = attention_mask
        key = tuple((name, value.shape) for name, value in given.items())
        if key not in self._steps:
            if not self.is_capturing:
                return self._upstream(**given, **more)
            self._steps[key] = self._capture(given)
        places, step = self._steps[key]
        for name, value in given.items():
            places[name].copy_(value)
        return BaseModelOutput(last_hidden_state=step())

    def _capture(self, given: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], Step]:
        places = {name: value.clone() for name, value in given.items()}
        return places, Step(lambda: self._upstream(**places)[0], self._lane)


class SideBySide:
    """Takes the place of `process_image` of upstream's processor: a thread for each image."""

    def __init__(self, processor: Any) -> None:
        self._upstream = processor.process_image
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="image")

    def __call__(self, images: Sequence[Image.Image] | None, **more: Any) -> Any:
        """See upstream; what comes back is what it makes of all images together."""
        if images is None or len(images) < 2:
            return self._upstream(images, **more)
        made = list(self._pool.map(lambda image: self._upstream([image], **more), images))
        data = {
            name: [[part for one in made for part in one[name][0]]]
            for name in ("pixel_values", "image_sizes")
        }
        sizes = torch.cat([one["tgt_sizes"][0] for one in made])
        return type(made[0])(data={**data, "tgt_sizes": [sizes]})


def make_look_ahead(
    duplex: Any, encoder: CapturedEncoder, device: torch.device
) -> Callable[[Sequence[Image.Image], Any], None]:
    """What captures the encoder for images of these sizes, before a file begins."""

    def look_ahead(images: Sequence[Image.Image], slices: Any) -> None:
        encoder.is_capturing = True
        try:
            prepared = duplex.processor.process_image(list(images), max_slice_nums=slices)
            duplex.model.get_vision_embedding(prepared.to(device))
        finally:
            encoder.is_capturing = False

    return look_ahead
