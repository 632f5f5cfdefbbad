"""What nothing else here could bear, said in one line before anything is read.

A locale that is not UTF-8, braces in the path of the checkout or of the working folder, and a config
file that is no YAML: file and line, neither of which Snakemake names.
"""

import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from hfd.errors import HfdError, require_utf8

try:
    require_utf8()
except HfdError as error:
    sys.exit(f"error: {error}")

for folder in (workflow.basedir, Path.cwd()):
    if "{" in str(folder) or "}" in str(folder):
        sys.exit(
            f"error: {folder}: has a brace, which Snakemake takes for a wildcard. Rename the folder"
        )

for path in ("config/config.yaml", "config/models.yaml"):
    try:
        with open(path, encoding="utf-8") as stream:
            yaml.safe_load(stream)
    except FileNotFoundError:
        pass  # Snakemake says so
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        sys.exit(f"error: {path}:{line}: is no YAML ({error.problem}). Correct that line")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        sys.exit(f"error: {path}: is no YAML in UTF-8 ({error}). Save it again as UTF-8 text")
