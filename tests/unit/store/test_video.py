"""A video keeps its frames' times, repeats to the byte, and survives the death of its writer."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from labctl.config.cell_schema import Video
from labctl.errors import InputError, StorageError
from labctl.store.video import (
    OPEN_S,
    USUAL,
    DepthWriter,
    VideoWriter,
    count_frames,
    frame_times,
    mend,
    read_depth,
    read_frames,
)

SHAPE = (48, 64, 3)


def picture(number: int) -> np.ndarray:
    """A dark frame with a white bar whose place tells its number, coarse enough to survive compression."""
    image = np.full(SHAPE, 30, dtype=np.uint8)
    image[:, 4 * (number % 16) : 4 * (number % 16) + 4] = 230
    return image


def number_of(image: np.ndarray) -> int:
    return int(image[:, :, 1].mean(axis=0).reshape(16, 4).mean(axis=1).argmax())


def write(path, times_us, video=USUAL, rate_hz=10.0) -> int:
    writer = VideoWriter(path, SHAPE[1], SHAPE[0], video, rate_hz=rate_hz)
    for number, pts_us in enumerate(times_us):
        writer.write(picture(number), pts_us)
    return writer.close()


def test_every_frame_comes_back_in_order_with_its_own_time(tmp_path):
    jitter = np.random.default_rng(0).integers(-20_000, 20_000, 25)
    times_us = [0] + [int(n * 100_000 + j) for n, j in enumerate(jitter, 1)]
    assert write(tmp_path / "a" / "v.mp4", times_us) == 26
    found = list(read_frames(tmp_path / "a" / "v.mp4"))
    assert [pts for pts, _ in found] == times_us
    assert [number_of(image) for _, image in found] == [n % 16 for n in range(26)]
    assert found[0][1].shape == SHAPE
    assert count_frames(tmp_path / "a" / "v.mp4") == 26


def test_colours_stay_in_their_channels(tmp_path):
    writer = VideoWriter(tmp_path / "v.mp4", 64, 48)
    writer.write(np.broadcast_to(np.array([220, 120, 40], dtype=np.uint8), SHAPE), 0)
    writer.close()
    ((_, image),) = read_frames(tmp_path / "v.mp4")
    assert np.abs(image.reshape(-1, 3).mean(axis=0) - [220, 120, 40]).max() < 6


def test_the_same_frames_give_the_same_bytes(tmp_path):
    times_us = [n * 100_000 for n in range(30)]
    write(tmp_path / "a.mp4", times_us)
    write(tmp_path / "b.mp4", times_us)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_a_video_without_frames_can_be_closed(tmp_path):
    assert write(tmp_path / "v.mp4", []) == 0
    assert (tmp_path / "v.mp4").exists()


def test_closing_twice_changes_nothing(tmp_path):
    writer = VideoWriter(tmp_path / "v.mp4", 64, 48)
    writer.write(picture(0), 0)
    assert (writer.close(), writer.close()) == (1, 1)


@pytest.mark.parametrize("pts_us", [0, -1])
def test_time_may_not_stand_still_or_run_back(tmp_path, pts_us):
    writer = VideoWriter(tmp_path / "v.mp4", 64, 48)
    writer.write(picture(0), 0)
    with pytest.raises(ValueError, match="after one at 0 us"):
        writer.write(picture(1), pts_us)
    writer.close()


def test_a_frame_of_another_size_is_refused(tmp_path):
    writer = VideoWriter(tmp_path / "v.mp4", 64, 48)
    with pytest.raises(ValueError, match="frame of"):
        writer.write(np.zeros((48, 48, 3), dtype=np.uint8), 0)
    writer.close()


def test_an_unknown_codec_is_one_clear_line_and_leaves_no_file(tmp_path):
    with pytest.raises(InputError, match="no video encoder 'nonsense'"):
        VideoWriter(tmp_path / "v.mp4", 64, 48, Video(codec="nonsense"))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_preset_is_one_clear_line_and_leaves_no_file(tmp_path):
    with pytest.raises(InputError, match="refuses preset 'nonsense' with crf 23"):
        VideoWriter(tmp_path / "v.mp4", 64, 48, Video(preset="nonsense"))
    assert list(tmp_path.iterdir()) == []


def test_an_odd_size_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be even"):
        VideoWriter(tmp_path / "v.mp4", 63, 48)


def test_what_is_no_video_is_said_so(tmp_path):
    (tmp_path / "v.mp4").write_bytes(b"not a video at all")
    for use in (count_frames, lambda path: list(read_frames(path))):
        with pytest.raises(StorageError, match="cannot be read as a video"):
            use(tmp_path / "v.mp4")
        with pytest.raises(StorageError, match="cannot be read as a video"):
            use(tmp_path / "missing.mp4")


def test_a_video_of_somebody_else_without_times_is_one_line(tmp_path):
    """A bare stream of H.264 has none, whatever its file is called."""
    with av.open(str(tmp_path / "v.mp4"), "w", format="h264") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture(number), format="rgb24")))
        container.mux(stream.encode(None))
    with pytest.raises(StorageError, match="pictures without a time of their own"):
        count_frames(tmp_path / "v.mp4")


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from labctl.store.video import VideoWriter
writer = VideoWriter(Path(sys.argv[1]), 64, 48, rate_hz=10.0)
for number in range(35):
    writer.write(np.full((48, 64, 3), 5 * number, dtype=np.uint8), number * 100_000)
print(writer.settled, flush=True)
sys.stdin.read()
"""


def test_a_killed_writer_leaves_all_but_the_open_fragment(tmp_path):
    path = tmp_path / "v.mp4"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    settled = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = [pts for pts, _ in read_frames(path)]
    assert found == [n * 100_000 for n in range(len(found))]
    assert 35 - OPEN_S * 10 - 1 <= len(found) <= 35
    assert frame_times(path).tolist() == found
    assert settled in found, "what is said to be in the file is in it"
    assert settled >= 3_400_000 - OPEN_S * 1e6 - 200_000


def test_a_file_cut_anywhere_plays_up_to_the_cut_once_mended(tmp_path):
    path = tmp_path / "v.mp4"
    write(path, [n * 100_000 for n in range(40)], rate_hz=5.0)
    whole = path.read_bytes()
    left, mended = [], 0
    for size in range(len(whole), len(whole) // 2, -37):
        path.write_bytes(whole[:size])
        cut = mend(path)
        assert path.stat().st_size == size - cut and mend(path) == 0
        numbers = [number_of(image) for _, image in read_frames(path)]
        assert numbers == [n % 16 for n in range(len(numbers))]
        left.append(len(numbers))
        mended += cut > 0
    assert left[0] == 40
    assert left == sorted(left, reverse=True)
    assert 5 <= left[-1] < 40
    assert mended > 5, "no cut went through a fragment's header"


def test_what_is_no_mp4_is_left_alone_by_mending(tmp_path):
    (tmp_path / "v.mp4").write_bytes(bytes(100))
    assert mend(tmp_path / "v.mp4") == 0
    assert (tmp_path / "v.mp4").read_bytes() == bytes(100)


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "video").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot be written"):
        VideoWriter(tmp_path / "video" / "v.mp4", 64, 48)


def depth_picture(number: int) -> np.ndarray:
    """Depth with holes (0), the farthest value and noise in every bit."""
    values = np.random.default_rng(number).integers(0, 2**16, (48, 64), dtype=np.uint16)
    values[:5], values[5] = 0, 65535
    return values


def test_depth_comes_back_bit_for_bit_at_its_own_times(tmp_path):
    writer = DepthWriter(tmp_path / "a" / "d.mkv", 64, 48)
    said = [writer.write(depth_picture(n), pts_us) for n, pts_us in enumerate([0, 33_334, 33_400, 33_450, 100_499])]
    assert said == [0, 33, 34, 35, 100], "no two frames share a millisecond"
    assert (writer.close(), writer.close()) == (5, 5)
    found = list(read_depth(tmp_path / "a" / "d.mkv"))
    assert [us for us, _ in found] == [1000 * ms for ms in said]
    assert all(np.array_equal(depth, depth_picture(n)) for n, (_, depth) in enumerate(found))
    assert count_frames(tmp_path / "a" / "d.mkv") == 5


def test_depth_of_another_shape_or_kind_is_refused(tmp_path):
    writer = DepthWriter(tmp_path / "d.mkv", 64, 48)
    for wrong in (np.zeros((64, 48), np.uint16), np.zeros((48, 64), np.float32)):
        with pytest.raises(ValueError, match="depth of"):
            writer.write(wrong, 0)
    writer.close()


DEPTH_WRITER = """
import sys
from pathlib import Path
import numpy as np
from labctl.store.video import DepthWriter
writer = DepthWriter(Path(sys.argv[1]), 64, 48, rate_hz=30.0)
for number in range(60):
    writer.write(np.full((48, 64), 1000 * number, dtype=np.uint16), number * 33_333)
print(writer.settled, flush=True)
sys.stdin.read()
"""


def test_a_killed_depth_writer_leaves_all_that_it_said_was_settled(tmp_path):
    path = tmp_path / "d.mkv"
    process = subprocess.Popen(
        [sys.executable, "-c", DEPTH_WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    settled = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = list(read_depth(path))
    assert found[-1][0] >= 1000 * settled >= 1000 * (round(59 * 33.333) - round(OPEN_S * 1e3) - 67)
    assert all((depth == 1000 * n).all() for n, (_, depth) in enumerate(found))


def test_everything_is_settled_once_a_video_is_closed_and_nothing_before_it_began(tmp_path):
    writer = VideoWriter(tmp_path / "v.mp4", 64, 48)
    assert writer.settled is None
    for number in range(12):
        writer.write(picture(number), number * 100_000)
        assert writer.settled is None or writer.settled < number * 100_000
    writer.close()
    assert writer.settled == 1_100_000


@pytest.mark.parametrize("codec", ["libx264", "libx265", "libsvtav1"])
def test_every_codec_worth_naming_keeps_frames_and_times(tmp_path, codec):
    preset = "10" if codec == "libsvtav1" else "ultrafast"
    times_us = [n * 33_333 + n % 3 for n in range(45)]
    assert write(tmp_path / "v.mp4", times_us, Video(codec=codec, preset=preset), rate_hz=30.0) == 45
    assert [number_of(image) for _, image in read_frames(tmp_path / "v.mp4")] == [n % 16 for n in range(45)]
    assert frame_times(tmp_path / "v.mp4").tolist() == times_us


ENCODES = """
import sys
from pathlib import Path
import numpy as np
from labctl.config.cell_schema import Video
from labctl.store.video import VideoWriter
for take in range(15):
    writer = VideoWriter(Path(sys.argv[1]) / f"{take}.mp4", 64, 48, Video(codec="libsvtav1", preset="10"), rate_hz=30.0)
    for number in range(45):
        writer.write(np.full((48, 64, 3), 5 * number, dtype=np.uint8), number * 33_333)
    assert writer.close() == 45
"""


@pytest.mark.thorough
def test_no_encoder_waits_for_itself_where_several_write_side_by_side(tmp_path):
    """With SVT-AV1's low delay (pred-struct=1) 6 of 160 such files never ended."""
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
    writing = [subprocess.Popen([sys.executable, "-c", ENCODES, folder], stderr=subprocess.PIPE) for folder in folders]
    try:
        assert [process.communicate(timeout=240) and process.returncode for process in writing] == [0] * 4
    finally:
        for process in writing:
            process.kill()
            process.wait()


@pytest.mark.privileged
@pytest.mark.parametrize("codec", ["libx264", "libx265", "libsvtav1"])
def test_no_encoder_goes_ahead_of_a_robot(tmp_path, codec):
    """SVT-AV1 asks for the highest realtime priority there is, for who opens it and for sixteen threads of its own."""
    before = {int(path.name) for path in Path("/proc/self/task").iterdir()}
    video = Video(codec=codec, preset="10" if codec == "libsvtav1" else "fast")
    writer = VideoWriter(tmp_path / "v.mp4", 64, 48, video)
    for number in range(5):
        writer.write(picture(number), number * 100_000)
    threads = {int(path.name) for path in Path("/proc/self/task").iterdir()} - before
    ahead = [thread for thread in threads if os.sched_getscheduler(thread) != os.SCHED_OTHER]
    writer.close()
    assert ahead == [] and os.sched_getscheduler(0) == os.SCHED_OTHER
