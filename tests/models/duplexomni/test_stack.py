"""The stack that the worker starts: on which GPUs, whether it fits, its end in every path."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hfd.errors import HfdError
from hfd.models.duplexomni.memory import check_memory
from hfd.models.duplexomni.settings import StackLaunch, read_settings
from hfd.models.duplexomni.weights import describe_weights
from hfd.models.registry import create_model
from tests.fakes.duplexomni_weights import fake_weights, reference_stack
from tests.models.duplexomni.conftest import drive, units

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Settings of a stack of reference servers on two pretended GPUs of 141 GiB."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "scripts")]))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    weights = fake_weights(tmp_path / "weights")
    stack = {**reference_stack(weights), "ready_timeout_s": 60}

    def settings(**more):
        return {"stack": {**stack, **more}, "clock": "virtual", "picture_long_side": 64}

    return settings


def left_by(server, settings):
    folder = Path(settings["stack"]["thinker_weights"])
    return json.loads((folder / f"{server}.json").read_text())


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


def test_a_started_stack_serves_samples_on_the_jobs_gpus_and_leaves_nothing_behind(
    launch, tmp_path
):
    settings = launch()
    model = create_model("duplexomni", settings)
    assert model.capabilities.gpus == 2
    try:
        identity = model.load()
        events = drive(model, units(4), tmp_path)
    finally:
        model.unload()
    thinker, talker = left_by("thinker", settings), left_by("talker", settings)
    assert [e.input_seq for e in events if hasattr(e, "pcm")] == [0, 1, 2, 3]
    assert thinker["CUDA_VISIBLE_DEVICES"] == "GPU-a" and thinker["THINKER_TP"] == "1"
    assert talker["CUDA_VISIBLE_DEVICES"] == "GPU-b" and talker["tp"] == "1"
    assert talker["TALKER_MTP_SUBPROC_CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert thinker["THINKER_MAX_MODEL_LEN"] == "65536"
    assert talker["TALKER_MTP_VERBOSE_LOG"] == talker["TALKER_MTP_PROFILE"] == "0"
    assert identity.detail["servers"] == "started" and identity.detail["thinker"] == "weights"
    assert identity.dtypes["bfloat16"] > 34e9 and len(identity.weights) == 64
    assert gone(thinker["pid"]) and gone(talker["pid"])


def test_a_server_that_dies_is_named_with_its_last_words_and_started_again_for_the_next_sample(
    launch, tmp_path, monkeypatch
):
    monkeypatch.setenv("REFERENCE_DIE_AT", "2")
    model = create_model("duplexomni", launch())
    try:
        model.load()
        with pytest.raises(HfdError, match=r"slice 2: .*ended with code 7.*CUDA out of memory"):
            drive(model, units(5), tmp_path)
        assert len([e for e in drive(model, units(5), tmp_path) if hasattr(e, "pcm")]) == 5
    finally:
        model.unload()


def test_an_engine_that_died_behind_its_server_is_named_and_both_are_started_again(
    launch, tmp_path, monkeypatch
):
    monkeypatch.setenv("REFERENCE_DEAD_AT", "1")
    settings = launch()
    model = create_model("duplexomni", settings)
    why = r"slice 2: the thinker answered 500.*EngineDeadError: EngineCore died"
    try:
        model.load()
        before = left_by("thinker", settings)["pid"]
        with pytest.raises(HfdError, match=why):
            drive(model, units(4), tmp_path)
        assert len([e for e in drive(model, units(4), tmp_path) if hasattr(e, "pcm")]) == 4
        assert left_by("thinker", settings)["pid"] != before and gone(before)
    finally:
        model.unload()


def test_a_server_that_does_not_come_up_stops_the_other(launch):
    settings = launch(talker_weights=launch()["stack"]["thinker_weights"] + "/none")
    with pytest.raises(HfdError, match=r"none.*is missing"):
        create_model("duplexomni", settings).load()
    broken = launch(server_root=str(HERE.parent))
    with pytest.raises(HfdError, match="server_died: server 'duplexomni-thinker' ended"):
        create_model("duplexomni", broken).load()


def stack(folder, **more):
    settings = {
        "server_root": "x",
        "python": "x",
        "thinker_weights": str(folder),
        "talker_weights": str(folder),
        **more,
    }
    found = read_settings({"stack": settings}).stack
    assert isinstance(found, StackLaunch)
    return found


@pytest.mark.parametrize(
    ("gpus", "gib", "tp", "more", "why"),
    [
        (8, 96, (4, 4), {}, None),
        (4, 96, (2, 2), {}, None),
        (4, 80, (2, 2), {}, None),
        (2, 141, (1, 1), {}, None),
        (2, 96, (1, 1), {}, None),
        (2, 80, (1, 1), {}, "a thinker GPU needs 69.0 GiB .weights 59.0 .* of 80 GiB is 64.0"),
        (4, 48, (2, 2), {}, "MTP engine on the last GPU needs 8.4 GiB"),
        (4, 40, (2, 2), {}, "a thinker GPU needs 36.5 GiB"),
        (1, 141, (1, 1), {}, "need 2 GPUs, the job was given 1"),
        (4, 96, (4, 4), {}, "thinker_tp 4 . talker_tp 4 need 8 GPUs, the job was given 4"),
        (8, 96, (4, 4), {"max_model_len": 70000}, "more than the model's 65536 positions"),
        (2, 141, (1, 1), {"talker_gpu_share": 0.83}, "Code2Wav beside the talker needs 1.4 GiB"),
    ],
)
def test_what_cannot_fit_is_refused_with_the_arithmetic(tmp_path, gpus, gib, tp, more, why):
    folder = fake_weights(tmp_path / "w")
    wanted = stack(folder, thinker_tp=tp[0], talker_tp=tp[1], **more)
    if why is None:
        check_memory(wanted, gpus, gib)
    else:
        with pytest.raises(HfdError, match=why):
            check_memory(wanted, gpus, gib)


def test_a_download_cut_short_is_noticed(tmp_path):
    folder = fake_weights(tmp_path / "w")
    file = next(folder.glob("*.safetensors"))
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size - 1)
    with pytest.raises(HfdError, match="its header says"):
        check_memory(stack(folder), 8, 96)


def test_quantised_weights_are_refused(tmp_path):
    folder = fake_weights(tmp_path / "w", dtype="F8_E4M3")
    with pytest.raises(HfdError, match=r"has the type F8_E4M3: quantised"):
        describe_weights(folder)


def test_the_name_of_the_weights_changes_with_a_few_of_their_bytes(tmp_path):
    folder = fake_weights(tmp_path / "w", thinker=0.001, talker=0.001, code2wav=0.001)
    before = describe_weights(folder)
    file = next(folder.glob("*.safetensors"))
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        stream.write(bytes(range(256)) * 4096)
    assert describe_weights(folder)[0] != before[0]


def test_a_folder_without_the_talker_is_noticed(tmp_path):
    folder = fake_weights(tmp_path / "w", talker=0)
    with pytest.raises(HfdError, match=r"no tensor whose name starts with 'talker\.'"):
        check_memory(stack(folder), 8, 96)
