"""The colours of every view of an episode, chosen to be told apart on a dark ground and by most colour-blind eyes.

May not: draw.
"""

from __future__ import annotations

from collections.abc import Mapping

Colour = tuple[int, int, int]

TONES: Mapping[str, Colour] = {
    "quiet": (84, 94, 110),
    "ready": (190, 140, 40),
    "go": (52, 116, 196),
    "good": (46, 142, 92),
    "bad": (206, 62, 58),
    "warn": (204, 112, 44),
}
JOINTS: tuple[Colour, ...] = (
    (76, 144, 240),
    (240, 130, 60),
    (90, 190, 110),
    (225, 85, 90),
    (160, 120, 220),
    (205, 175, 70),
    (90, 195, 205),
)
STAGE_COLOURS: Mapping[str, Colour] = {"requested": (120, 170, 255), "limited": (255, 190, 80), "sent": (110, 220, 130)}
ITEMS: Mapping[str, Colour] = {
    "waiting": (226, 196, 128),
    "held": (255, 132, 60),
    "moved": (98, 200, 130),
    "lost": (214, 69, 65),
}
_EARLY_TO_LATE: tuple[Colour, ...] = ((68, 84, 196), (38, 150, 190), (70, 190, 130), (180, 210, 70), (250, 220, 60))


def along(share: float) -> Colour:
    """The colour of a moment, given which share (0 to 1) of an episode has passed: blue early, yellow late."""
    place = min(max(share, 0.0), 1.0) * (len(_EARLY_TO_LATE) - 1)
    low = min(int(place), len(_EARLY_TO_LATE) - 2)
    a, b, part = _EARLY_TO_LATE[low], _EARLY_TO_LATE[low + 1], place - low
    return tuple(round(x + (y - x) * part) for x, y in zip(a, b, strict=True))  # pyright: ignore[reportReturnType]
