"""The suite as a user runs it over a model of theirs, which lies outside of the repository."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check(module, folder, settings="{}"):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract"]
    command += ["--deselect", "tests/contract/test_outside_model.py"]
    command += ["--model", module, "--model-path", folder, "--model-settings", settings]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_sound_model_passes():
    done = check("testmodels.beeper", ROOT / "tests" / "models_for_tests")
    assert done.returncode == 0, done.stdout


def test_a_model_that_remembers_the_last_sample_is_caught(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "leaky.py").write_text(
        "from testmodels.beeper import Beeper, Text\n"
        "class Leaky(Beeper):\n"
        "    said = 0\n"
        "    def push(self, unit):\n"
        "        super().push(unit)\n"
        "        self.said += 1\n"
        "        self._emit(Text(f'{self.said} '))\n"
        "MODEL = Leaky\n"
    )
    (tmp_path / "testmodels").symlink_to(ROOT / "tests" / "models_for_tests" / "testmodels")
    done = check("mine.leaky", tmp_path)
    assert done.returncode == 1
    assert "FAILED tests/contract/test_contract.py::test_another_file_in_between" in done.stdout
