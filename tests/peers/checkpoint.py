"""A tiny random checkpoint of DuplexOmni's true shape, for the authors' talker and its Code2Wav."""

from __future__ import annotations

import json
import sys
from pathlib import Path

GROUPS = 4


def make(folder: Path) -> None:
    """Write config.json and model.safetensors into `folder`."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig
    from transformers.models.qwen3_omni_moe import configuration_qwen3_omni_moe as configuration
    from transformers.models.qwen3_omni_moe import modeling_qwen3_omni_moe as modeling

    folder.mkdir(parents=True, exist_ok=True)
    config = configuration.Qwen3OmniMoeConfig().to_dict()
    talker = config["talker_config"]
    small = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2}
    talker["text_config"].update(small, vocab_size=64, num_hidden_layers=2, head_dim=16)
    talker["code_predictor_config"].update(
        hidden_size=32, vocab_size=32, num_code_groups=GROUPS, num_hidden_layers=1
    )
    talker.update(num_code_groups=GROUPS, codec_bos_id=3, codec_eos_token_id=4, codec_pad_id=5)
    config["code2wav_config"].update(
        small,
        num_hidden_layers=1,
        intermediate_size=32,
        codebook_size=16,
        num_quantizers=GROUPS,
        decoder_dim=32,
    )
    for part in (
        talker["text_config"],
        talker["code_predictor_config"],
        config["code2wav_config"],
    ):
        part.pop("layer_types", None)
    (folder / "config.json").write_text(json.dumps(config))
    code2wav = modeling.Qwen3OmniMoeCode2Wav._from_config(
        AutoConfig.from_pretrained(folder).code2wav_config
    )
    tensors = {
        f"code2wav.{name}": tensor.contiguous().to(torch.bfloat16)
        for name, tensor in code2wav.state_dict().items()
        if tensor.is_floating_point()
    }
    tensors["talker.model.codec_embedding.weight"] = torch.randn(64, 32).to(torch.bfloat16)
    for group in range(GROUPS - 1):
        name = f"talker.code_predictor.model.codec_embedding.{group}.weight"
        tensors[name] = torch.randn(32, 32).to(torch.bfloat16)
    tensors["thinker.model.x"] = torch.randn(4, 4).to(torch.bfloat16)
    save_file(tensors, folder / "model.safetensors")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
