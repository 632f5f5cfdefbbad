"""MiniCPM-o 4.5 in full size with random weights, run by its public code (`HFD_PEERS`).

The vocoder is the true one of minicpmo-utils, in full size and random too; the two models that only
measure the voice (speech tokens, speaker) are stand-ins.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import soundfile
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tiny import minicpmo as tiny

from hfd.models.minicpmo.checkpoint import VOCODER, VOICE, Snapshot

VOICE_S = 8.0
FLOW = """flow: !new:cosyvoice2.flow.flow.CausalMaskedDiffWithXvec
  input_size: 512
  output_size: 80
  spk_embed_dim: 192
  output_type: mel
  vocab_size: 6561
  encoder: !new:cosyvoice2.transformer.upsample_encoder_v2.UpsampleConformerEncoderV2
    input_size: 512
    output_size: 512
    input_layer: linear
    pre_lookahead_len: 3
    num_blocks: {blocks}
    num_up_blocks: {up_blocks}
    up_stride: 2
    up_scale_factor: 2
    attention_heads: 8
    pos_enc_layer_type: rel_pos_espnet
    selfattention_layer_type: rel_selfattn
    key_bias: true
    linear_units: 2048
    normalize_before: true
  decoder: !new:cosyvoice2.flow.flow_matching.CausalConditionalCFM
    inference_cfg_rate: 0.7
    estimator: !new:cosyvoice2.flow.decoder_dit.DiT
      in_channels: 320
      out_channels: 80
      mlp_ratio: 4.0
      depth: 16
      num_heads: 8
      head_dim: 64
      hidden_size: 512
"""


def full_config() -> dict[str, Any]:
    """config.json with the shapes of MiniCPM-o 4.5."""
    made = tiny.config()
    made |= {
        "vocab_size": 151_748,
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
    }
    made["vision_config"] |= {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
    }
    made["audio_config"] |= {
        "d_model": 1024,
        "encoder_layers": 24,
        "encoder_attention_heads": 16,
        "encoder_ffn_dim": 4096,
    }
    made["tts_config"] |= {
        "llm_dim": 4096,
        "llm_intermediate_size": 768,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_key_value_heads": 12,
        "num_hidden_layers": 20,
        "num_text_tokens": 152_064,
    }
    return made


def write_folder(folder: Path, peers: Path, shapes: dict[str, Any]) -> Snapshot:
    """A snapshot's files without its weights; the vocoder's are written."""
    code = tiny.find_code(peers)
    if code is None:
        raise SystemExit(f"{peers} lacks clones of MiniCPM-o-Demo and Interaction_Train")
    tiny.write_files(folder, code, shapes)
    tiny.write_voice(folder / VOICE, VOICE_S)
    _write_vocoder(folder / VOCODER)
    return Snapshot(folder, folder / VOICE)


def _write_vocoder(folder: Path) -> None:
    """Random weights in the vocoder's own files."""
    _stand_in_for_the_voice()
    from hyperpyyaml import load_hyperpyyaml
    from stepaudio2 import token2wav

    (folder / "flow.yaml").write_text(FLOW.format(blocks=6, up_blocks=4), "utf-8")
    token2wav._setup_cosyvoice2_alias()
    torch.manual_seed(0)
    with (folder / "flow.yaml").open() as stream:
        flow = load_hyperpyyaml(stream)["flow"]
    for parameter in flow.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    torch.save(flow.state_dict(), folder / "flow.pt")
    wave = token2wav.HiFTGenerator().state_dict()
    torch.save({f"generator.{name}": value for name, value in wave.items()}, folder / "hift.pt")


def _stand_in_for_the_voice() -> None:
    """What measures the voice, which has no public weights outside of the snapshot."""
    import onnxruntime
    import s3tokenizer
    import torchaudio

    class SpeechTokens(torch.nn.Module):
        def quantize(self, mels: torch.Tensor, lengths: torch.Tensor) -> tuple[Any, Any]:
            count = int(lengths[0]) // 4
            codes = torch.full((1, count), 100, dtype=torch.int32, device=mels.device)
            return codes, torch.tensor([count], dtype=torch.int32, device=mels.device)

    class Speaker:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def get_inputs(self) -> list[Any]:
            return [SimpleNamespace(name="x")]

        def run(self, *_: Any) -> list[np.ndarray]:
            return [np.full((1, 192), 0.1, np.float32)]

    def load(path: str, **_: Any) -> tuple[torch.Tensor, int]:
        pcm, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return torch.from_numpy(pcm.T.copy()), rate

    s3tokenizer.load_model = lambda path: SpeechTokens()
    onnxruntime.InferenceSession = Speaker
    torchaudio.load = load  # from 2.9 on torchaudio's own needs torchcodec
