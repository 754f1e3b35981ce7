"""Pictures of a rubric's anchors: kept at opening, upright, without what a camera wrote beside them, and verified."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.runs.campaigns import events_of
from support.runs.task_campaign import PICTURED, open_tasks, striped

from labctl.cli import call
from labctl.core.task import tasks_of
from labctl.errors import InputError
from labctl.store.pictures import load_photo
from labctl.store.rubric_pictures import WIDEST
from labctl.store.verifying.verify import verify_campaign

ROTATED_CLOCKWISE = 6  # of Exif's orientation (tag 0x0112): the picture was taken with the camera turned
PLACE = "somewhere in the yard"


def photo(width: int, height: int) -> bytes:
    """A JPEG of a phone: red above and blue below once it is turned as its orientation says, and a place beside it."""
    image = np.zeros((height, width, 3), np.uint8)
    image[:, : width // 2], image[:, width // 2 :] = (220, 0, 0), (0, 0, 220)
    exif = Image.Exif()
    exif[0x0112] = ROTATED_CLOCKWISE
    exif[0x010E] = PLACE
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", exif=exif, quality=95)
    return buffer.getvalue()


def test_a_photo_is_kept_upright_no_larger_than_needed_and_without_what_the_camera_wrote(
    tmp_path: Path,
) -> None:
    half = photo(2400, 1800)
    assert PLACE.encode() in half
    opened = open_tasks(tmp_path, conditions=["score"], protocol=PICTURED, files={"half.png": half})
    task = tasks_of(events_of(opened.folder)[0].body)["score"]  # type: ignore[arg-type]
    assert ["picture" in anchor for anchor in task.rubric] == [False, True, False]
    kept = task.rubric[1]["picture"]
    image = load_photo(opened.folder, kept)
    assert max(image.shape) == WIDEST and image.shape[0] > image.shape[1]
    assert image[10, 10, 0] > 180 > 60 > image[10, 10, 2] and image[-10, 10, 2] > 180
    assert PLACE.encode() not in (opened.folder / kept["file"]).read_bytes()


def test_one_that_was_changed_or_is_gone_is_named_by_verify(tmp_path: Path) -> None:
    opened = open_tasks(tmp_path, conditions=["score"], protocol=PICTURED, files={"half.png": striped()})
    assert not verify_campaign(opened.folder).problems
    kept = opened.folder / "photos/rubric/03-02.png"
    kept.write_bytes(striped(40, 30))
    assert any("photos/rubric/03-02.png" in str(one) for one in verify_campaign(opened.folder).problems)
    kept.unlink()
    assert any("photos/rubric/03-02.png" in str(one) for one in verify_campaign(opened.folder).problems)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "cannot be read (No such file or directory); put it there or take the entry out"),
        ({"half.png": b"GIF89a"}, "is no PNG or JPEG picture that can be read; save it as one of these"),
        ({"half.png": striped()[:90]}, "is no PNG or JPEG picture that can be read"),
    ],
    ids=["missing", "another kind", "cut off"],
)
def test_a_picture_that_cannot_serve_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, bytes], why: str
) -> None:
    with pytest.raises(InputError) as refused:
        open_tasks(tmp_path, conditions=["score"], protocol=PICTURED, files=files)
    protocol = tmp_path / "protocols/p.toml"
    line = next(n for n, row in enumerate(protocol.read_text("utf-8").splitlines(), 1) if "half.png" in row)
    assert str(refused.value).startswith(f"{protocol}:{line}: picture ") and why in str(refused.value)
    assert "\n" not in str(refused.value) and not list((tmp_path / "campaigns").iterdir())
    assert call(["plan", str(protocol)]) == 2
    assert why in capsys.readouterr().err
