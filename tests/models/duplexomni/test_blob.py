"""The tensor blob: its text is read, nothing in it is executed, nothing unfit is passed on."""

from __future__ import annotations

import base64
import io
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hfd.errors import HfdError
from hfd.models.duplexomni.blob import read_blob
from tests.fakes.duplexomni import Talker, Thinker, thinker_blob
from tests.fakes.torch_archive import archive_of, torch_archive
from tests.models.duplexomni.conftest import drive, units

BY_TORCH = Path(__file__).with_name("thinker_blob.torch-2.13.pt.b64")
"""A thinker's payload as torch 2.13 saved it: bf16 and fp16 tensors, one of them a view."""


class Command:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_blob_that_torch_wrote_is_read():
    blob = read_blob(base64.b64decode(BY_TORCH.read_bytes()))
    assert blob.text == '{"tts": "你好"}'
    assert (blob.session_id, blob.finish_reason) == ("会话", "stop")
    assert (blob.prompt_tokens, blob.completion_tokens) == (70000, 12)


@pytest.mark.heavy
def test_a_blob_that_torch_writes_now_is_read_and_ours_is_read_by_torch():
    import torch

    out = io.BytesIO()
    tensor = torch.zeros(3, 2, dtype=torch.float16)
    torch.save({"text": "hi", "session_id": "s", "turns": [{"top_hidden_state": tensor}]}, out)
    assert read_blob(out.getvalue()).text == "hi"
    loaded = torch.load(io.BytesIO(thinker_blob("s", "hi", 7, 5)), weights_only=True)
    assert loaded["text"] == "hi" and int(loaded["turns"][0]["top_hidden_state"][0, 0]) == 7


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_would_run_code_runs_nothing_and_reaches_no_talker(
    servers, model_of, tmp_path, protocol
):
    mark = tmp_path / "executed"
    attack = archive_of(pickle.dumps({"text": Command(mark), "session_id": "s"}, protocol), [])
    thinker = servers(Thinker, blob=lambda index, honest: attack if index == 2 else honest)
    talker = servers(Talker)
    with pytest.raises(HfdError, match=r"slice 2: .*nothing of it was executed or passed on"):
        drive(model_of(thinker, talker), units(6), tmp_path)
    assert not mark.exists()
    assert [turn.index for turn in talker.heard] == [0, 1]
    assert thinker.posts == 3
    pickle.loads(pickle.dumps(Command(mark), protocol))
    assert mark.exists(), "the attack is a real one"


def members(blob):
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one test wants two members of one name
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


HONEST = thinker_blob("s", "hi", 0, 5)
FILES = list(members(HONEST).items())


@pytest.mark.parametrize(
    ("blob", "why"),
    [
        (pickle.dumps({"text": "hi"}), "no torch.save archive"),
        (b"", "no torch.save archive"),
        (HONEST[:-30], "damaged"),
        (HONEST[: len(HONEST) // 2], "damaged"),
        (zipped(FILES + [("archive/constants.pkl", b"N.")]), "does not write"),
        (zipped(FILES + [("archive/code/__torch__.py", b"x")]), "does not write"),
        (zipped(FILES + [("other/data.pkl", b"N.")]), "does not write"),
        (zipped(FILES + [FILES[0]]), "same name"),
        (zipped(FILES, zipfile.ZIP_DEFLATED), "compressed"),
        (zipped(FILES[1:]), "damaged"),
        (HONEST[:4] + HONEST, "not where it says"),
        (archive_of(b"\x80\x02N.", []), "no text"),
        (torch_archive({"text": 5, "session_id": "s"}), "no text"),
        (torch_archive({"text": "hi"}), "no session"),
        (archive_of(b"\x80\x02}", []), "damaged"),
        (archive_of(b"\x80\x02u.", []), "damaged"),
        (archive_of(b"\x80\x02cos\nsystem\n.", []), "names os.system"),
        (archive_of(b"\x80\x02X\xff\xff\xff\x7fabc.", []), "damaged"),
        (archive_of(b"\x80\x02}r\xff\xff\xff\xff.", []), "no text"),
        (archive_of(b"\x80\x05\x96" + b"\xff" * 7 + b"\x0f.", []), "damaged"),
        (archive_of(b"\x80\x02" + b"N" * 2**20 + b".", []), "bytes"),
    ],
)
def test_whatever_torch_save_does_not_write_is_refused(blob, why):
    with pytest.raises(HfdError, match=why):
        read_blob(blob)


def test_random_damage_never_does_more_than_raise_a_clear_error():
    rng = np.random.default_rng(2)
    for _ in range(1000):
        damaged = bytearray(HONEST)
        for place in rng.integers(0, len(damaged), 3):
            damaged[place] = rng.integers(0, 256)
        try:
            read_blob(bytes(damaged))
        except HfdError:
            continue
