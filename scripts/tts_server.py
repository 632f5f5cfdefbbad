"""Qwen3-TTS streaming server: ``ws://HOST:PORT/v1/tts/stream`` (docs/tts_protocol.md).

Runs in the environment of envs/tts.yaml. On CUDA the talker step, the code predictor and the codec
run as captured graphs; elsewhere plainly, which is slower than speech and said so at the start.
"""

from __future__ import annotations

import argparse
import ipaddress
import logging
import sys
from pathlib import Path

from hfd.errors import HfdError, run_cli
from hfd.models.tts.protocol import MAX_EMIT_FRAMES

MAX_SESSIONS = 64


def arguments_of(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="snapshot folder (CustomVoice)")
    parser.add_argument("--device", default="cuda:0", help="cuda:N or cpu (default %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="address (default %(default)s)")
    parser.add_argument("--port", type=int, default=8091, help="port (default %(default)s)")
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="needed for any --host but loopback: the server asks nobody who they are",
    )
    parser.add_argument(
        "--emit-every-frames",
        type=chunk_sizes,
        default=(1,),
        metavar="N[,N...]",
        help=f"frames of 80 ms in a chunk, 1 to {MAX_EMIT_FRAMES}; 1,2,4 grows to 4 (default 1)",
    )
    parser.add_argument(
        "--sessions",
        type=int,
        default=1,
        help="utterances spoken at a time, in one batch (default %(default)s)",
    )
    parser.add_argument("--speaker", help="default speaker (default: the model's first)")
    parser.add_argument("--language", default="auto", help="default language (default auto)")
    parser.add_argument("--plain", action="store_true", help="no captured graphs on CUDA either")
    parser.add_argument(
        "--max-frames",
        type=int,
        default=2048,
        help="longest talker session in frames; sets the cache's size (default %(default)s)",
    )
    parser.add_argument("--threads", type=int, help="CPU threads of the model")
    return parser.parse_args(argv)


def chunk_sizes(value: str) -> tuple[int, ...]:
    """``1,2,4`` as numbers."""
    return tuple(int(size) for size in value.split(","))


def check(arguments: argparse.Namespace) -> None:
    """Refuse what would be wrong later.

    Raises:
        HfdError: a number out of range, or an address that is not loopback without the flag.
    """
    if not all(1 <= size <= MAX_EMIT_FRAMES for size in arguments.emit_every_frames):
        raise HfdError(f"must be 1 to {MAX_EMIT_FRAMES}", field="--emit-every-frames")
    if not 1 <= arguments.sessions <= MAX_SESSIONS:
        raise HfdError(f"must be 1 to {MAX_SESSIONS}", field="--sessions")
    try:
        loopback = ipaddress.ip_address(arguments.host).is_loopback
    except ValueError:
        loopback = arguments.host == "localhost"
    if not loopback and not arguments.allow_remote:
        raise HfdError(
            f"{arguments.host} can be reached from other machines, and the server asks nobody"
            " who they are",
            field="--host",
            remedy="Use 127.0.0.1, or add --allow-remote inside a network you trust",
        )


def first(name: str | None, known: tuple[str, ...], field: str) -> tuple[str, ...]:
    """The known names with `name` in front."""
    if name is None:
        return known
    if name.lower() not in known:
        raise HfdError(f"{name!r} is not one of {sorted(known)}", field=field)
    return (name.lower(), *(other for other in known if other != name.lower()))


def main(argv: list[str] | None) -> None:
    """Entry point."""
    arguments = arguments_of(argv)
    check(arguments)
    import torch  # after the checks: it takes seconds

    from hfd.models.tts.loading import load_voice
    from hfd.models.tts.server import Offer, serve_forever

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s"
    )
    log = logging.getLogger("tts")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    captured = arguments.device.startswith("cuda") and not arguments.plain
    if not captured:
        log.warning(
            "plain path on %s: a frame may take longer than the 80 ms it lasts", arguments.device
        )
    voice, info, speakers, languages = load_voice(
        arguments.model,
        arguments.device,
        captured,
        arguments.sessions,
        arguments.max_frames,
    )
    offer = Offer(
        voice,
        info,
        first(arguments.speaker, speakers, "--speaker"),
        first(arguments.language, languages, "--language"),
        arguments.emit_every_frames,
    )
    serve_forever(offer, arguments.host, arguments.port)


if __name__ == "__main__":
    run_cli(main)
