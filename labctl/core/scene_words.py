"""What a comparison with a reference means, in plain words for an operator.

May not: compare pictures. A body is `labctl.scene.matching.Match.body()` or `Move.body()` as it travels and is
journalled.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.messages.body_parts import MatchBody, MoveBody

FINE, SCENE_DIFFERS, UNLIKE = "as its reference", "scene differs", "unlike its reference"
CAMERA_MOVED, NOT_RECOGNISED = "camera moved", "not recognised"
LEAST_PX = 0.25  # a part of a movement smaller than this is not worth a word
LEAST_DEG = 0.05
PART = 1e-4  # of the picture: a smaller change is noise
LIKE = 0.9  # structural similarity: a picture below it loses points whatever else is found


def moved(body: MatchBody) -> MoveBody:
    """The camera's movement, of a match."""
    parts = body["shift_px"], body["rotation_deg"], body["moved_px"], body["note"]
    return {"shift_px": parts[0], "rotation_deg": parts[1], "moved_px": parts[2], "note": parts[3]}


def camera_moved(body: MoveBody, limit_px: float) -> bool:
    """Whether the camera does not stand where it stood: some of its picture moved farther than the limit, or it shows
    something else altogether.
    """
    return bool(body["note"]) or (body["moved_px"] or 0.0) > limit_px


def verdict(body: MatchBody, limit_px: float) -> str:
    """One of FINE, SCENE_DIFFERS, UNLIKE, CAMERA_MOVED, NOT_RECOGNISED, for the body of a match."""
    if body["note"]:
        return NOT_RECOGNISED
    if camera_moved(body, limit_px):
        return CAMERA_MOVED
    if body["changed"] > PART:
        return SCENE_DIFFERS
    return UNLIKE if body.get("ssim", 1.0) < LIKE else FINE


def movement(body: MoveBody) -> str:
    """How a camera's picture has moved: "6.5 px to the right and 4.7 px up, turned 0.4° clockwise"."""
    if body["note"]:
        return f"its view is not recognised ({body['note']})"
    if body["shift_px"] is None:
        return "too little structure to tell whether it moved"
    right, down = body["shift_px"]
    parts = [
        f"{abs(length):.1f} px {after if length > 0 else before}"
        for length, before, after in ((right, "to the left", "to the right"), (down, "up", "down"))
        if abs(length) >= LEAST_PX
    ]
    turn = body["rotation_deg"] or 0.0
    turned = f"turned {abs(turn):.1f}° {'counter-clockwise' if turn > 0 else 'clockwise'}"
    return ", ".join([" and ".join(parts)] * bool(parts) + [turned] * (abs(turn) >= LEAST_DEG)) or "not moved"


def change(body: MatchBody, size: tuple[int, int]) -> str:
    """What differs in the scene: "0.28 % of the picture changed, most of it in the middle". size: width, height."""
    if body["note"]:
        return movement(body)
    regions = body["regions"]
    if not regions and (alike := body.get("ssim", 1.0)) < LIKE:
        said = (
            f"no place stands out, but the whole is unlike its reference (similarity {alike:.2f}, {LIKE:.2f} is alike)"
        )
        return f"{said}: blurred, dirty or noisy, or much of the scene is another"
    if not regions:
        return "nothing in the scene changed"
    where = place(regions[0]["box"], size)
    places = f", most of it {where}" if len(regions) > 1 else f", {where}"
    return f"{100 * body['changed']:.2g} % of the picture changed{places}"


def place(box: Sequence[int], size: tuple[int, int]) -> str:
    """Where in a picture of this width and height a box (left, top, right, bottom) lies: "at the upper left"."""
    across = _third((box[0] + box[2]) / 2 / size[0], "left", "right")
    down = _third((box[1] + box[3]) / 2 / size[1], "upper", "lower")
    if not across and not down:
        return "in the middle"
    if not across:
        return "at the top" if down == "upper" else "at the bottom"
    return f"at the {down} {across}" if down else f"at the {across}"


def _third(share: float, first: str, last: str) -> str:
    return first if share < 1 / 3 else last if share > 2 / 3 else ""
