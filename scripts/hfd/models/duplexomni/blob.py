"""Read the thinker's text out of its tensor blob without executing anything.

The blob is a ``torch.save`` archive: a zip of one pickle (``data.pkl``) and raw tensor bytes.
Whatever ``torch.save`` does not write for dicts, lists, text and tensors is refused. The whole
archive is checked, because the same bytes go on to the talker, which opens them with pickle.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hfd.errors import HfdError
from hfd.models.duplexomni.plain_pickle import UnfitPickle, read_plain_pickle

MAX_BLOB_BYTES = 256 * 2**20
MAX_PICKLE_BYTES = 2**20

_DAMAGE = (
    zipfile.BadZipFile,
    struct.error,
    LookupError,
    ValueError,
    OSError,
    EOFError,
    OverflowError,
    RuntimeError,
)
"""What reading a damaged archive may raise."""

_MEMBER = re.compile(
    r"(data\.pkl|byteorder|version|\.format_version|\.storage_alignment"
    r"|\.data/serialization_id|data/\d+)"
)
"""What ``torch.save`` puts in an archive; no TorchScript, no second pickle."""

_NAMES = {"torch._utils._rebuild_tensor_v2", "collections.OrderedDict"} | {
    f"torch.{kind}Storage"
    for kind in ("Half", "Float", "BFloat16", "Double", "Long", "Int", "Short", "Byte", "Bool")
}


@dataclass(frozen=True)
class ThinkerBlob:
    """What the runner needs of a thinker's answer.

    Attributes:
        session_id: the session the server answered for.
        text: the thinker's words, unchanged.
        finish_reason: why it stopped writing (``stop``, ``length``).
        prompt_tokens, completion_tokens: what the server counted, None if it did not.
    """

    session_id: str
    text: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None

    @property
    def context_tokens(self) -> int | None:
        """The context after this answer."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def read_blob(data: bytes) -> ThinkerBlob:
    """Read the text of a thinker's answer.

    Raises:
        HfdError: the bytes are no such archive, or their pickle names anything but tensors.
    """
    try:
        payload = read_plain_pickle(_pickle_of(data), _NAMES)
    except UnfitPickle as error:
        raise _unfit(f"its pickle is refused: {error}") from error
    if not isinstance(payload, Mapping) or not isinstance(payload.get("text"), str):
        raise _unfit("there is no text in it")
    if not isinstance(payload.get("session_id"), str):
        raise _unfit("it names no session")
    if not _is_text(payload["text"]) or not _is_text(payload["session_id"]):
        raise _unfit("its text holds half characters (lone surrogates)")
    response = payload.get("response")
    choice, usage = _first_choice(response), _mapping(_mapping(response).get("usage"))
    return ThinkerBlob(
        session_id=payload["session_id"],
        text=payload["text"],
        finish_reason=_of_kind(choice, "finish_reason", str),
        prompt_tokens=_of_kind(usage, "prompt_tokens", int),
        completion_tokens=_of_kind(usage, "completion_tokens", int),
    )


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_kind(found: Mapping[str, Any], key: str, kind: type) -> Any:
    """A value of that type, or None if there is none.

    Raises:
        HfdError: another type.
    """
    value = found.get(key)
    if value is not None and type(value) is not kind:
        raise _unfit(f"its {key} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _pickle_of(data: bytes) -> bytes:
    """The archive's one pickle, after a check of every member's name and size."""
    if len(data) > MAX_BLOB_BYTES:
        raise _unfit(f"it has {len(data)} bytes, at most {MAX_BLOB_BYTES} are taken")
    if not data.startswith(b"PK\x03\x04"):
        raise _unfit("it is no torch.save archive")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.start_dir != _directory_offset(data):
                raise _unfit("its directory is not where it says")
            members = archive.infolist()
            folder = members[0].filename.split("/")[0] + "/"
            names = [member.filename for member in members]
            if len(set(names)) != len(names):
                raise _unfit("two of its members have the same name")
            for member in members:
                inside = member.filename.removeprefix(folder)
                if inside == member.filename or not _MEMBER.fullmatch(inside):
                    raise _unfit(f"it holds {member.filename!r}, which torch.save does not write")
                if member.compress_type != zipfile.ZIP_STORED:
                    raise _unfit(f"{member.filename!r} is compressed")
            pickled = archive.getinfo(f"{folder}data.pkl")
            if pickled.file_size > MAX_PICKLE_BYTES:
                raise _unfit(f"its pickle has {pickled.file_size} bytes")
            return archive.read(pickled)
    except _DAMAGE as error:
        raise _unfit(f"its archive is damaged: {error}") from error


def _directory_offset(data: bytes) -> int:
    """Where the archive itself says its directory is.

    Python looks for it at the end and would read another directory than torch does if the two
    differed.
    """
    offset: int = struct.unpack_from("<I", data, len(data) - 6)[0]
    locator = len(data) - 42
    if data[locator : locator + 4] == b"PK\x06\x07":  # torch writes zip64 archives
        (record,) = struct.unpack_from("<Q", data, locator + 8)
        offset = struct.unpack_from("<Q", data, record + 48)[0]
    return offset


def _unfit(problem: str) -> HfdError:
    return HfdError(
        f"the thinker's answer is not the tensor blob it should be: {problem}; nothing of it was "
        "executed or passed on",
        remedy="Check that thinker_url is the authors' server_thinker.py of the pinned commit",
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first_choice(response: object) -> Mapping[str, Any]:
    choices = _mapping(response).get("choices")
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}
