"""The modules that a lab has written for itself are not sealed: of which text each episode ran, and what is said when
they were edited within a campaign.

May not: import one, or tell which of them a trial uses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from labctl.bus import Body
from labctl.core.record import Record
from labctl.messages.body_parts import Pins
from labctl.software import collect_pins, modules_of, of_the_lab
from labctl.store.campaign import Campaign
from labctl.store.lab_folder import lab_with
from labctl.store.verifying.edited import edited_since

PinsNow = Callable[[], Body]
WHOSE = "the lab's own modules (beside lab.toml) were edited"
NOT_SEALED = "they are not sealed, and every report says before which episode they changed"


def edited_modules(record: Record, modules: str) -> str:
    """What is said where a lab's modules, by their digest, are others than of the episode that began last; "" where
    they are not, or none began.
    """
    starts = [episode.start for episode in record.episodes.values() if episode.start is not None]
    pins = starts[-1].get("pins") if starts else None
    if not pins or pins.get("modules", modules) == modules:
        return ""
    return f"{WHOSE} since the last episode: trials from now on run them as they are; {NOT_SEALED}"


def pins_of_episodes(lab: Path | None, say: Callable[[str], None], *, live: bool) -> PinsNow:
    """The software of each episode, asked for as its arm is revealed. live: its controller is a process of its own,
    which loads the modules as they are then, and what drives robot and cameras has loaded them when the run began.
    """
    pins: Pins = of_the_lab(lab) or collect_pins()

    def now() -> Pins:
        nonlocal pins
        if lab is None or not live or "modules" not in pins:
            return pins
        with suppress(OSError):  # an editor writes a file in this moment
            if (found := modules_of(lab) or "none") != pins["modules"]:
                pins = {**pins, "modules": found}
                text = "controllers run them as they are from here on, robot and cameras once a run begins"
                say(f"{WHOSE} while this run goes: {text}; {NOT_SEALED}")
        return pins

    return now


def edited_lines(campaign: Campaign) -> list[str]:
    """What was edited since a campaign was opened: a line on files that do not hold, one on modules that do."""
    lab, modules = lab_with(campaign.folder), None
    with suppress(OSError):  # one that cannot be read is for whatever loads it to refuse
        modules = None if lab is None else modules_of(lab)
    line = "" if modules is None else edited_modules(campaign.record(), modules)
    return [str(one) for one in (edited_since(campaign), line) if one]
