"""Text that a server cut inside a character: the character is whole again, nothing is lost."""

import pytest

from hfd.stream.recorder import whole_characters

GRIN = "\U0001f600"
HIGH, LOW = "\ud83d", "\ude00"


@pytest.mark.parametrize(
    ("text", "whole", "half"),
    [
        ("plain", "plain", ""),
        ("a" + HIGH, "a", HIGH),
        (HIGH + LOW + "b", GRIN + "b", ""),
        (LOW, "\ufffd", ""),
        (HIGH + "c", "\ufffdc", ""),
        (GRIN, GRIN, ""),
    ],
)
def test_halves_become_characters_again(text, whole, half):
    assert whole_characters(text) == (whole, half)
