"""Token ids to text without loss: half a character waits for its other half.

A server that decodes each token alone sends U+FFFD for a character of two tokens. Where it also
tells the token ids, the bytes can be joined again, given the model's ``vocab.json``.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from hfd.errors import HfdError
from hfd.files import read_json


def _byte_of_symbol() -> dict[str, int]:
    """The alphabet of byte-level BPE: printable Latin-1 stands for itself, other bytes for 256+."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | {
        chr(256 + rank): byte for rank, byte in enumerate(others)
    }


class TokenText:
    """Bytes of each token of a byte-level BPE vocabulary (``vocab.json``: string to id)."""

    def __init__(self, path: Path) -> None:
        """Read the vocabulary.

        Raises:
            HfdError: missing file, or no byte-level vocabulary.
        """
        alphabet = _byte_of_symbol()
        try:
            self._bytes = {
                token_id: bytes(alphabet[symbol] for symbol in token)
                for token, token_id in read_json(path).items()
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise HfdError(
                "is no byte-level BPE vocabulary", file=path, field="settings.vocab"
            ) from error
        self.reset()

    def reset(self) -> None:
        """Forget half a character."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def pending(self) -> bool:
        """Whether half a character is waiting."""
        return bool(self._decoder.getstate()[0])

    def text(self, token_ids: tuple[int, ...]) -> str:
        """Characters completed by these tokens; control tokens, which have no text, give none."""
        return self._decoder.decode(b"".join(self._bytes.get(n, b"") for n in token_ids))
