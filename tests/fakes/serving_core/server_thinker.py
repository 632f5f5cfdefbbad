"""Started as the authors' server_thinker.py is: all by environment. Serves the reference thinker.

``REFERENCE_DIE_AT`` makes it end in that slice, once. From ``REFERENCE_DEAD_AT`` on it answers
everything but /health with 500, as with a dead engine, until it is started again.
``REFERENCE_DELAY_S`` is the time it takes for a slice; with ``REFERENCE_LIGHT`` it does not parse
what it is sent. It leaves its environment in its weights folder.
"""

import json
import os
import sys
from pathlib import Path

from tests.fakes.duplexomni import Thinker, hashed_answer

assert os.environ["THINKER_HOST"] == "127.0.0.1"
folder = Path(os.environ["THINKER_MODEL"])
died = folder / "died"
server = None


def answer(index, messages):
    if str(index) == os.environ.get("REFERENCE_DIE_AT") and not died.exists():
        died.touch()
        print("CUDA out of memory", file=sys.stderr, flush=True)
        os._exit(7)
    if str(index) == os.environ.get("REFERENCE_DEAD_AT") and not died.exists():
        died.touch()
        server.dead = True
        print("vllm.v1.engine.exceptions.EngineDeadError: EngineCore died", file=sys.stderr)
    return hashed_answer(index, messages)


(folder / "thinker.json").write_text(json.dumps({**os.environ, "pid": os.getpid()}))
server = Thinker(
    answer,
    port=int(os.environ["THINKER_PORT"]),
    model=str(folder),
    max_model_len=int(os.environ["THINKER_MAX_MODEL_LEN"]),
    delay_s=lambda index: float(os.environ.get("REFERENCE_DELAY_S", "0")),
    light="REFERENCE_LIGHT" in os.environ,
)
server.wait()
