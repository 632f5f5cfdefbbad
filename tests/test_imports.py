"""Imports run one way through the rooms of scripts/hfd, and nothing knows the benchmarks."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HFD = ROOT / "scripts" / "hfd"
GROUND = {"errors", "files", "media_time", "pcm", "secrets", "video_frames"}
"""Single modules at the bottom, which every room may use."""
MAY_KNOW = {
    "duplex": set(),
    "data": set(),
    "stream": {"duplex", "data"},
    "models": {"duplex"},
    "jobs": {"duplex", "data", "stream", "models"},
    "judge": {"data"},
    "probes": {"duplex", "data", "stream", "jobs", "judge"},
}


def imports(file: Path) -> set[str]:
    """Dotted names of all modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms_of(file: Path) -> set[str]:
    """Rooms and single modules of hfd that a file imports."""
    parts = (name.split(".") for name in imports(file))
    named = {part[1] for part in parts if part[0] == "hfd" and len(part) > 1}
    return {name for name in named if (HFD / name).is_dir() or (HFD / f"{name}.py").is_file()}


def test_every_room_is_known():
    rooms = {path.parent.name for path in HFD.glob("*/__init__.py")}
    assert rooms == set(MAY_KNOW)
    assert {path.stem for path in HFD.glob("*.py")} - {"__init__"} == GROUND


@pytest.mark.parametrize("room", sorted(MAY_KNOW))
def test_a_room_knows_only_the_rooms_below_it(room):
    allowed = MAY_KNOW[room] | GROUND | {room}
    wrong = {
        f"{file.relative_to(HFD)} imports hfd.{name}"
        for file in (HFD / room).rglob("*.py")
        for name in rooms_of(file) - allowed
    }
    assert not wrong


def test_what_lies_at_the_bottom_knows_no_room():
    files = [HFD / f"{name}.py" for name in GROUND]
    assert not {file.name: rooms_of(file) - GROUND for file in files if rooms_of(file) - GROUND}


def test_models_do_not_know_each_other():
    shared = {path.stem for path in (HFD / "models").glob("*.py")} | {"graphs", "sockets", "tts"}
    wrong = set()
    for folder in (p for p in (HFD / "models").iterdir() if (p / "__init__.py").exists()):
        for file in folder.rglob("*.py"):
            names = {n.split(".")[2] for n in imports(file) if n.startswith("hfd.models.")}
            packages = {n for n in names if (HFD / "models" / n).is_dir()}
            others = packages - shared - {folder.name} - BUILT_ON.get(folder.name, set())
            wrong |= {f"{file.relative_to(HFD)} imports {name}" for name in others}
    assert not wrong


STAND_INS = ("tests.workflow.desk", "tests.fakes", "tests.tiny")
"""What a benchmark may run the library against."""
BUILT_ON = {"gander": {"minicpmo"}}
"""A model that is another one with differences."""


def test_tests_and_library_never_import_benchmarks_nor_the_other_way_round():
    benchmarks = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    for file in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]:
        own = {path.stem for path in file.parent.glob("*.py")}
        assert not ({n.split(".")[0] for n in imports(file)} & benchmarks) - own, file
    for file in (ROOT / "benchmarks").glob("*.py"):
        named = {name for name in imports(file) if name.startswith("tests.")}
        assert not {name for name in named if not name.startswith(STAND_INS)}, file
