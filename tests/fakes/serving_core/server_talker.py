"""Started as the authors' server_talker.py is. Serves the reference talker."""

import argparse
import json
import os
from pathlib import Path

from tests.fakes.duplexomni import Talker

parser = argparse.ArgumentParser()
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--tp", required=True)
args = parser.parse_args()
assert args.host == "127.0.0.1"
folder = Path(os.environ["TALKER_MODEL"])
seen = {**os.environ, "pid": os.getpid(), "tp": args.tp}
(folder / "talker.json").write_text(json.dumps(seen))
Talker(port=args.port).wait()
