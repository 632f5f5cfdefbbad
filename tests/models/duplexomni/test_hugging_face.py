"""Against Hugging Face's own code: the length of a slice's sound, the tokens of a frame."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from hfd.duplex.frames import FrameSize
from hfd.models.duplexomni.context import context_need
from hfd.models.duplexomni.wire import SLICE_OUT_SAMPLES, TALKER_SAMPLES
from hfd.models.media import sent_size

pytestmark = pytest.mark.heavy


def test_code2wav_makes_555_samples_less_than_six_frames_last():
    import torch
    from transformers.models.qwen3_omni_moe import configuration_qwen3_omni_moe as configuration
    from transformers.models.qwen3_omni_moe import modeling_qwen3_omni_moe as modeling

    config = configuration.Qwen3OmniMoeCode2WavConfig(
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        num_hidden_layers=1,
        intermediate_size=32,
        codebook_size=16,
        num_quantizers=4,
        decoder_dim=32,
    )
    code2wav = modeling.Qwen3OmniMoeCode2Wav._from_config(config).eval()
    assert code2wav.total_upsample * 6 == SLICE_OUT_SAMPLES
    with torch.inference_mode():
        wav = code2wav.chunked_decode(
            torch.randint(0, 16, (1, 4, 6)), chunk_size=300, left_context_size=25
        )
    assert wav.shape[-1] == TALKER_SAMPLES == 1920 * 6 - 555


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((1280, 720), 336), ((640, 480), 432), ((720, 1280), 336), ((480, 480), 576)],
)
def test_a_frame_has_as_many_tokens_as_the_models_image_processor_gives_it(size, tokens):
    # The module that needs no torchvision; before transformers 5 there was only one.
    found = find_spec("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    processing = import_module(
        f"transformers.models.qwen2_vl.image_processing_{'pil_' if found else ''}qwen2_vl"
    )
    width, height = sent_size(*size, FrameSize("long_side", 784, enlarge=True))
    rows, columns = processing.smart_resize(
        height, width, factor=32, min_pixels=56 * 56, max_pixels=12845056
    )
    assert rows * columns // 32**2 == tokens
    assert context_need(7680, *size, picture_interval=4, long_side=784).frame_tokens == tokens
