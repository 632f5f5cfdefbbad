"""One sample under other definitions: which of its metrics then have another value.

The detector runs once over a track (hfd.judge.speech.Detection); this is arithmetic on what it
found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hfd.judge.definitions import ALTERNATIVES, STATED, Definition
from hfd.judge.metrics import Answer, Question, hesitation_metrics, response_metrics
from hfd.judge.speech import Detection


def other_values(
    detection: Detection, answer: Answer, question: Question
) -> dict[str, dict[str, Any]]:
    """The question's metrics of one sample under every other definition.

    Args:
        detection: of the saved wav.
        answer: under the stated definition.

    Returns:
        By name of the definition, the metrics whose value is another one; mostly none.
    """
    stated = _values(answer, question, STATED)
    found = {}
    for name, definition in ALTERNATIVES.items():
        segments = answer.segments
        if definition.speech_chance != STATED.speech_chance:
            segments = detection.segments(definition.speech_chance)
        values = _values(replace(answer, segments=segments), question, definition)
        found[name] = {key: value for key, value in values.items() if value != stated[key]}
    return found


def _values(answer: Answer, question: Question, by: Definition) -> dict[str, Any]:
    return hesitation_metrics(answer, question, by) | response_metrics(answer, question, by)
