"""ROMA under the team's old command line: scripts/run_roma.py, which says what it takes."""

import runpy
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"

if __name__ == "__main__":
    sys.path.insert(0, str(SCRIPTS))
    runpy.run_path(str(SCRIPTS / "run_roma.py"), run_name="__main__")
