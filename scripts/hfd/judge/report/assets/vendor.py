"""Copy the report's libraries from node_modules (made by ``npm ci``) into vendor/.

Run ``npm ci --ignore-scripts && python vendor.py`` in this folder after changing package.json; the
lock file pins what is copied, vendor/LOCK.json records it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

HERE = Path(__file__).parent
FILES = {
    "plotly.js-cartesian-dist-min": {"plotly-cartesian.min.js": "plotly.js"},
    "tabulator-tables": {
        "dist/js/tabulator.min.js": "tabulator.js",
        "dist/css/tabulator_simple.min.css": "tabulator.css",
    },
}


def main() -> None:
    target = HERE / "vendor"
    target.mkdir(exist_ok=True)
    lock = json.loads((HERE / "package-lock.json").read_text())["packages"]
    recorded = {}
    for package, files in FILES.items():
        source = HERE / "node_modules" / package
        entry = lock[f"node_modules/{package}"]
        recorded[package] = {key: entry[key] for key in ("version", "integrity", "license")}
        for name, copy in files.items():
            text = (source / name).read_text(encoding="utf-8")
            lines = [line for line in text.splitlines() if "sourceMappingURL" not in line]
            (target / copy).write_text("\n".join(lines) + "\n", encoding="utf-8")
        shutil.copy(source / "LICENSE", target / f"LICENSE.{package}")
    (target / "LOCK.json").write_text(json.dumps(recorded, indent=2) + "\n")


if __name__ == "__main__":
    main()
