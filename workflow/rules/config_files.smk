"""What nothing else here could bear, said in one line before anything is read.

A locale that is not UTF-8, braces in the path of the checkout or of the working folder, and config
files that cannot be used: file and line, neither of which Snakemake names.
"""

import sys
from pathlib import Path

import yaml

REPOSITORY = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
sys.path.insert(0, str(REPOSITORY / "scripts"))

from hfd.errors import HfdError, require_utf8

try:
    require_utf8()
except HfdError as error:
    sys.exit(f"error: {error}")

for folder in (REPOSITORY, Path.cwd()):
    if "{" in str(folder) or "}" in str(folder):
        sys.exit(
            f"error: {folder}: has a brace, which Snakemake takes for a wildcard. Rename the folder"
        )

HOLDS_KEYS = {}  # whether a file holds anything but comments

for path in ("config/config.yaml", "config/models.yaml"):
    try:
        with open(path, encoding="utf-8") as stream:
            found = yaml.safe_load(stream)
        if found is not None and not isinstance(found, dict):
            sys.exit(f"error: {path}: holds no keys. Write `key: value`, one a line")
        HOLDS_KEYS[path] = found is not None
    except FileNotFoundError:
        pass  # Snakemake says so
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        sys.exit(f"error: {path}:{line}: is no YAML ({error.problem}). Correct that line")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        sys.exit(f"error: {path}: is no YAML in UTF-8 ({error}). Save it again as UTF-8 text")
