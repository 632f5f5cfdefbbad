"""Gander's files in both layouts; everything that is missing is said at once."""

from __future__ import annotations

import subprocess

import pytest

from hfd.models.gander import checkpoint
from hfd.models.gander.settings import parse_settings
from tests.models.minicpmo.test_checkpoint import write_shard


@pytest.fixture
def place(tmp_path):
    """A clone, a release and two checkpoints that lie apart."""
    for name in checkpoint.CODE:
        path = tmp_path / "Agent 仓库" / checkpoint.PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    for folder in ("release/thinker", "release/talker", "a", "b"):
        (tmp_path / folder).mkdir(parents=True)
        write_shard(tmp_path / folder / "model.safetensors", {"x": ("BF16", [4])})
        (tmp_path / folder / "tokenizer.json").write_text("{}")
    (tmp_path / "release" / checkpoint.MANIFEST).write_text("{}")
    return tmp_path


def settings(place, **more):
    paths = more or {"gander_path": str(place / "release")}
    repo = str(place / "Agent 仓库")
    return parse_settings({"model_path": "m", "repo_path": repo, **paths})


def test_both_layouts_are_found(place):
    release = checkpoint.find_release(settings(place))
    assert release.manifest and checkpoint.release_problems(release) == []
    apart = {"thinker_path": str(place / "a"), "talker_path": str(place / "b")}
    release = checkpoint.find_release(settings(place, **apart))
    assert release.manifest is None and checkpoint.release_problems(release) == []


def test_everything_that_is_missing_is_named_at_once(place):
    (place / "Agent 仓库/minicpm_ft/mcpmft/infer/online.py").unlink()
    (place / "release/talker/model.safetensors").unlink()
    (place / "release/thinker/tokenizer.json").unlink()
    write_shard(place / "release/thinker/model.safetensors", {"x": ("I8", [4])})
    told = "\n".join(checkpoint.release_problems(checkpoint.find_release(settings(place))))
    for words in ("infer/online.py", "talker: file model.safetensors", "type I8", "tokenizer.json"):
        assert words in told


def test_the_clones_commit_and_whether_it_was_changed_are_known(place):
    release = checkpoint.find_release(settings(place))
    clone = place / "Agent 仓库"
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    found = checkpoint.commit(release)
    assert found and len(found) == 40
    (clone / "minicpm_ft/mcpmft/args.py").write_text("changed")
    assert checkpoint.commit(release) == f"{found}+"


def test_other_weights_are_another_model(place):
    release = checkpoint.find_release(settings(place))
    first = checkpoint.weights_hash(release, "base")
    write_shard(place / "release/talker/model.safetensors", {"x": ("BF16", [8])})
    assert checkpoint.weights_hash(release, "base") != first
