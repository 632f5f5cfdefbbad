"""Planted cheats: each takes honest results and cheats in one way, with every file in agreement.

`CHEATS` is the matrix of docs/audit.md: the rule that must catch the cheat, or what evidence
would settle it where a folder alone cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.judge.cheats import feed, identity, sound, story, times


@dataclass(frozen=True)
class Cheat:
    """A way to cheat.

    Attributes:
        name: what is done, in words.
        apply: changes a copy of a model's results folder.
        caught_by: the rule that must fail.
        also: rules that may fail with it, because the cheat breaks what they ask too.
        settled_by: where no rule can see it in a folder: the evidence that would settle it.
        named_by: a rule that names it all the same, for a person to look at.
    """

    name: str
    apply: Callable[[Path], None]
    caught_by: str | None
    also: tuple[str, ...] = ()
    settled_by: str = ""
    named_by: str = ""


SPOKEN_CHEATS = (
    Cheat("answers 1.7 times as fast in every file, chain made anew", sound.answers_sped_up, "A15"),
    Cheat(
        "sound of some samples before its text, chain made anew", times.answer_moved_forward, "A15"
    ),
)
"""Cheats whose sound must be listened to: tests/judge/test_alignment.py does."""

CHEATS = (
    Cheat("sound placed 0.9 s after the question's end", times.fixed_delay, "A8"),
    Cheat("sound placed 0.32 s after the text", times.fixed_delay_after_text, "A8"),
    Cheat(
        "speech re-synthesised, chunks of another codec", sound.other_voice_in_other_chunks, "A11"
    ),
    Cheat(
        "speech of some samples made anew, in whole frames",
        sound.other_voice_in_whole_frames,
        "A11",
    ),
    Cheat("text first, speech afterwards", times.post_tts, "A11"),
    Cheat("another voice origin than the contract's", identity.declared_otherwise, "A11"),
    Cheat("padding doubled at run time", feed.doubled_padding, "A2"),
    Cheat("a unit left out", feed.skipped_unit, "A2", ("A5",)),
    Cheat("pictures left out", feed.skipped_pictures, "A2"),
    Cheat(
        "generated offline, written as one answer after the end", times.offline_in_one_piece, "A7"
    ),
    Cheat("times made up on a millisecond grid", times.made_up_times, "A7"),
    Cheat("context cropped", feed.cropped_context, "A12"),
    Cheat("outputs put at their unit's start", times.audio_at_unit_start, "A5"),
    Cheat("sound played before it arrived", times.played_before_it_arrived, "A9"),
    Cheat("units sent before they exist", times.sent_early, "A3", ("A5",)),
    Cheat("text edited in result.json", story.edited_text_in_result, "A16"),
    Cheat("the question's end moved in result.json", times.question_moved, "A16"),
    Cheat("compute understated in result.json", times.compute_understated, "A16"),
    Cheat("text of half the samples edited in every file", story.edited_text_everywhere, "A15"),
    Cheat("wav edited", sound.edited_wav, "A10", ("A16",)),
    Cheat("wav cut short", sound.wav_cut_at_the_end, "A10", ("A16",)),
    Cheat("wav a fifth faster, its hash made to agree", sound.wav_sped_up, "A10", ("A16",)),
    Cheat("wav trimmed at its start, its hash made to agree", sound.wav_trimmed, "A10", ("A16",)),
    Cheat("wav moved by 20 ms, its hash made to agree", sound.wav_shifted, "A10", ("A16",)),
    Cheat("speech cut off where the files end", sound.speech_cut_where_files_end, "A14"),
    Cheat("trace edited", story.edited_trace, "A16", ("A4",)),
    Cheat("compute left out of the clock", times.compute_left_out, "A4"),
    Cheat("another sample's results", story.another_sample_s_results, "A16", ("A1", "A14", "A2")),
    Cheat(
        "another sample's results, renamed and sealed",
        story.another_sample_s_results_renamed,
        "A1",
        ("A14", "A16", "A2"),
    ),
    Cheat("one sample made with another seed", identity.other_seed_for_one, "A13"),
    Cheat("other settings than the fingerprint's", identity.settings_hidden, "A13"),
    Cheat("another model's results in this model's folder", identity.under_another_name, "A13"),
    Cheat(
        "another module's results under this model's name", identity.another_model_renamed, "A13"
    ),
    Cheat("sound of zeros", sound.silent_sound, "A14"),
    Cheat("sound too soft to be heard", sound.inaudible_sound, "A14"),
    Cheat("noise in the place of speech", sound.noise_for_speech, "A15"),
    Cheat("99 % of the compute hidden", times.compute_hidden, "A4"),
    Cheat("compute claimed as the recorder's own", times.own_time_claimed, "A4"),
    Cheat("another video fed", feed.other_video, "A1"),
    Cheat("words of the correction before it began", times.knows_the_correction, "A6"),
    Cheat("other pictures fed", feed.other_pictures_fed, "A1"),
    Cheat("fewer pictures taken than the model's rule says", feed.fewer_pictures_taken, "A1"),
    Cheat("other sound fed", feed.other_sound_fed, "A1"),
    Cheat("a sample dropped", story.dropped_sample, "A14"),
    Cheat("one sound for two samples", sound.duplicated_sound, "A14"),
    Cheat("text without sound", story.text_only, "A14"),
    Cheat("model quantised", identity.quantised, "A13"),
    Cheat("weights of eight bits", identity.quantised_by_type, "A13"),
    Cheat("other weights for one sample", identity.other_weights_for_one, "A13"),
    Cheat("another acceleration for one sample", identity.other_acceleration_for_one, "A13"),
    Cheat("one sample made beside others, on a shared card", identity.shared_times_for_one, "A13"),
    Cheat("times of a shared card called the model's own", identity.shared_times_called_own, "A13"),
    Cheat(
        "generated offline, written in pieces after the end",
        times.offline_in_pieces,
        None,
        settled_by="A6: `prefix_probe_<model>`, and answers that begin while the file plays",
    ),
    Cheat(
        "text of one sample edited in every file, chain made anew",
        story.edited_text_in_one_sample,
        None,
        settled_by="A15 names the sample (one in a set may be the recogniser's mistake): listen",
        named_by="A15",
    ),
    Cheat(
        "silence in the place of a failure",
        story.silence_for_a_failure,
        None,
        settled_by="A14 names the sample where its error is on record (`--work`); a witness",
        named_by="A14",
    ),
    Cheat(
        "speech cut off where one file ends",
        sound.speech_cut_where_one_file_ends,
        None,
        settled_by="A14 names the sample and its last words: listen",
        named_by="A14",
    ),
    Cheat(
        "speech in the gap removed from every file, chain made anew",
        sound.speech_in_the_gap_removed,
        None,
        settled_by="the worker's store (A16 with `--work`), or a witness's log",
    ),
)
