"""A config file that is no YAML: one line with file and line, neither of which Snakemake names."""

import sys

import yaml

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
