"""What models are shown does not depend on the machine it runs on."""

import os

import av
import pytest

from hfd.duplex.frames import FrameSize
from hfd.duplex.units import Frame
from hfd.models.media import jpeg
from tests.workflow.desk import write_video


@pytest.mark.parametrize("size", ["64x48", "1280x720"])
def test_a_picture_is_the_same_on_one_core_and_on_many(tmp_path, size):
    path = tmp_path / "clip.mp4"
    write_video(path, size=size)
    with av.open(path) as container:
        picture = next(container.decode(video=0))

    def shown() -> tuple[bytes, ...]:
        frame = Frame(0, picture)
        return (
            frame.rgb.tobytes(),
            frame.digest(),
            jpeg(frame, 95),
            jpeg(frame, 85, FrameSize("long_side", 90, enlarge=True)),
        )

    on_all, cores = shown(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert shown() == on_all
    finally:
        os.sched_setaffinity(0, cores)
