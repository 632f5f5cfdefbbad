"""Images on the GPU: prepared there bit for bit, encoded in one captured step, beside the sound.

Upstream prepares images on one CPU core, asks the GPU for their sizes a dozen times, and writes the
scores of its attention out, half a gigabyte a second. Here frames go to the GPU as they are; what
upstream makes of their 8 bits is looked up in a table; sizes stay with the host; and as nothing
waits, the sound's encoder is launched while the images' runs. All is checked against upstream's own
for the shapes that a file's frames have; any other shape (a last second of fewer frames) takes
upstream's way.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from hfd.models.graphs.capture import CaptureError, Lane, Step, check_equal
from hfd.models.resize import Plan, find_plan, resize_exactly


class Beside:
    """A stream for images; what is done in it runs beside the rest until `join`.

    Work on it begins after all that was launched before, so that no memory is used twice.
    """

    def __init__(self, lane: Lane | None) -> None:
        self._lane = lane
        self._held: list[Any] = []

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Launch on the images' stream."""
        if self._lane is None:
            yield
            return
        self._lane.stream.wait_stream(torch.cuda.current_stream(self._lane.device))
        with torch.cuda.stream(self._lane.stream):
            yield

    def wrap(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`function` on the images' stream; what it is given is kept until `join`.

        Memory that was made on another stream could else be given away while this one reads it.
        """

        def run(data: Any) -> Any:
            self._held.append(data)
            with self.turn():
                return function(data)

        return run

    def join(self) -> None:
        """Let what is launched from now on begin after the images are done."""
        if self._lane is not None:
            torch.cuda.current_stream(self._lane.device).wait_stream(self._lane.stream)
        self._held.clear()


class Prepared(dict[str, Any]):
    """What upstream's processor makes of images, each part where it is wanted already."""

    def to(self, *_: Any, **__: Any) -> Prepared:
        return self


class Preparer:
    """Takes the place of `process_image` of upstream's processor."""

    def __init__(self, processor: Any, beside: Beside, device: torch.device) -> None:
        self._upstream, self._images = processor.process_image, processor.image_processor
        self._beside, self._device = beside, device
        self._table = self._make_table()
        self._plans: dict[tuple[int, int], Plan | None] = {}

    def _make_table(self) -> torch.Tensor:
        """What upstream makes of each of 256 values, float32 [3, 256]."""
        values = np.arange(256, dtype=np.float32)[None] / 255
        mean, std = (
            np.asarray(part, np.float32)[:, None] for part in (self._images.mean, self._images.std)
        )
        return torch.from_numpy((values - mean) / std).to(self._device)

    def __call__(self, images: Sequence[Image.Image] | None, **more: Any) -> Any:
        """See upstream."""
        if not self._is_known(images, more):
            return self._upstream(images, **more)
        assert images is not None
        with self._beside.turn():
            patches = [self._prepare(image, self._plans[image.size]) for image in images]
        sizes = [self._grid(image.size) for image in images]
        return Prepared(
            pixel_values=[patches],
            image_sizes=[[torch.tensor(image.size) for image in images]],
            tgt_sizes=[torch.tensor(sizes)],
        )

    def _is_known(self, images: Sequence[Image.Image] | None, more: dict[str, Any]) -> bool:
        return (
            bool(images)
            and more == {"max_slice_nums": 1}
            and all(self._plans.get(image.size) and image.mode == "RGB" for image in images or ())
        )

    def _new_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height to which upstream resizes an image that it does not slice."""
        side, patch = self._images.scale_resolution, self._images.patch_size
        width, height = self._images.find_best_resize(size, side, patch, allow_upscale=True)
        return int(width), int(height)

    def _grid(self, size: tuple[int, int]) -> tuple[int, int]:
        """Patches of an image: rows and columns."""
        width, height = self._new_size(size)
        return height // self._images.patch_size, width // self._images.patch_size

    def _prepare(self, image: Image.Image, plan: Plan | None) -> torch.Tensor:
        """An image as upstream's encoder wants it, float32 [3, patch, patches * patch]."""
        assert plan is not None
        patch = self._images.patch_size
        pixels = torch.from_numpy(np.array(image)).to(self._device)
        resized = resize_exactly(pixels[None], plan)[0]
        rows, columns = resized.shape[0] // patch, resized.shape[1] // patch
        split = resized.reshape(rows, patch, columns, patch, 3).permute(4, 1, 0, 2, 3)
        places = split.reshape(3, -1).long()
        return self._table.gather(1, places).reshape(3, patch, rows * columns * patch)

    def learn(self, size: tuple[int, int]) -> None:
        """Find out how images of this size are prepared; where it is not as upstream's, it is its.

        Tried on noise.
        """
        if size in self._plans:
            return
        noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        image = Image.fromarray(noise)
        plan = find_plan(*size, self._new_size(size))
        wanted = self._upstream([image], max_slice_nums=1)
        with self._beside.turn():
            same = plan is not None and self._prepare(image, plan).cpu().equal(
                wanted["pixel_values"][0][0]
            )
        grid = tuple(int(part) for part in wanted["tgt_sizes"][0][0])
        self._plans[size] = plan if same and grid == self._grid(size) else None


class CapturedEncoder:
    """Takes the place of `forward` of upstream's vision encoder.

    Attributes:
        is_capturing: whether a shape that was not seen before is captured; else it is not.
    """

    def __init__(self, encoder: Any, lane: Lane | None) -> None:
        self._upstream, self._lane = encoder.forward, lane
        self._attentions = [layer.self_attn for layer in encoder.layers]
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
        """Capture upstream's layers, with shorter attention where it gives the same states."""
        places = {name: value.clone() for name, value in given.items()}

        def plain() -> torch.Tensor:
            states: torch.Tensor = self._upstream(**places)[0]
            return states

        def shorter() -> torch.Tensor:
            with self._short_attention():
                return plain()

        try:
            check_equal([shorter()], [plain()])
        except CaptureError as error:
            print(f"minicpmo: images with upstream's attention ({error})", file=sys.stderr)
            return places, Step(plain, self._lane)
        return places, Step(shorter, self._lane)

    @contextlib.contextmanager
    def _short_attention(self) -> Iterator[None]:
        for attention in self._attentions:
            attention.forward = _attention_of(attention)
        try:
            yield
        finally:
            for attention in self._attentions:
                del attention.forward


def _attention_of(part: Any) -> Callable[..., tuple[torch.Tensor, None]]:
    """What upstream's attention computes, in one kernel that writes no scores."""

    def attend(
        hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any
    ) -> tuple[torch.Tensor, None]:
        query, key, value = (
            linear(hidden_states).unflatten(-1, (part.num_heads, -1)).transpose(1, 2)
            for linear in (part.q_proj, part.k_proj, part.v_proj)
        )
        out = F.scaled_dot_product_attention(query, key, value, attention_mask, scale=part.scale)
        return part.out_proj(out.transpose(1, 2).flatten(2)), None

    return attend


def make_look_ahead(
    duplex: Any, preparer: Preparer, encoder: CapturedEncoder, device: torch.device
) -> Callable[[Sequence[Image.Image], Any], None]:
    """What learns how to prepare and encode images of these sizes, before a file begins."""

    def look_ahead(images: Sequence[Image.Image], slices: Any) -> None:
        if slices == 1:
            for image in images:
                preparer.learn(image.size)
        encoder.is_capturing = True
        try:
            prepared = duplex.processor.process_image(list(images), max_slice_nums=slices)
            duplex.model.get_vision_embedding(prepared.to(device))
        finally:
            encoder.is_capturing = False

    return look_ahead
