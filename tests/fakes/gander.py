"""A double of Gander's online runner, on the double of MiniCPM-o's duplex object.

It keeps the runner's contract: `prepare` resets the shared model itself and gives the duplex object
no voice for its prompt; an interrupt closes the turn and drops what talker and vocoder held.
``MODEL`` is the module's runner on top of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hfd.duplex.model import Identity
from hfd.models.gander.model import MAX_TOKENS, Gander
from hfd.models.gander.session import GanderParts
from tests.fakes.minicpmo import LISTEN, SPEAK, TURN_END, Duplex, Script, spoken
from tests.tiny.minicpmo import IDS

INTERRUPT = IDS["<|interrupt|>"]
CODES = 50


class OnlineRunner:
    """The double."""

    def __init__(self, duplex: Duplex) -> None:
        self.duplex = duplex
        self.prepared: list[dict[str, Any]] = []

    def prepare(
        self,
        system_prompt: str | None = None,
        ref_audio_path: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self.prepared.append({"prompt": system_prompt, "voice": ref_audio_path, "tools": tools})
        self.duplex.model.reset_session(reset_token2wav_cache=False)
        nothing = np.zeros(0, np.float32)
        self.duplex.prepare(system_prompt, nothing, ref_audio_path)

    def streaming_generate(self, **arguments: Any) -> dict[str, Any]:
        duplex = self.duplex
        before = len(duplex.total_ids)
        answer = dict(duplex.streaming_generate(**arguments))
        ids = duplex.total_ids[before:]
        answer["generated_token_ids"] = ids
        if INTERRUPT in ids:
            duplex.current_turn_ended = True
            duplex.tts_text_start_pos = 0
            duplex._withheld.clear()
            answer |= {"is_listen": True, "is_interrupt": True, "text": "", "n_tts_tokens": 0}
            answer |= {"audio_waveform": None, "end_of_turn": False}
        return answer


def usual_units() -> list[list[int]]:
    """Listens, speaks two seconds, breaks off, listens, and answers anew."""
    return [
        [LISTEN],
        [SPEAK, *spoken("It is")],
        [SPEAK, *spoken(" a ")],
        [INTERRUPT],
        [LISTEN],
        [SPEAK, *spoken("Two."), TURN_END],
    ]


class DoubleGander(Gander):
    """The module's runner over the double; nothing is loaded."""

    script: Script | None = None

    def __init__(self, settings: Mapping[str, Any]) -> None:
        places = {"model_path": "double", "repo_path": "double", "gander_path": "double"}
        super().__init__({**places, **settings})

    def load_parts(self) -> GanderParts:
        duplex = Duplex(self.script or Script(usual_units() * 20, codes=CODES))
        return GanderParts(
            duplex=duplex,
            voice=np.zeros(32_000, np.float32),
            voice_path="voice.wav",
            seed=duplex.seed,
            no_codes=list,
            positions=MAX_TOKENS,
            talker_positions=4096,
            identity=Identity("double of Gander", None),
            runner=OnlineRunner(duplex),
            prompt="the prompt of its training",
        )


MODEL = DoubleGander
