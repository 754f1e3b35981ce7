"""Driver "faults": another driver that delays, raises, hangs or exits on cue. For tests of what labctl does then.

May not: be used in a campaign that counts: its kind is "faults", which a cell of kind real refuses and all episodes of
a campaign are stamped with that uses it anywhere. It goes around a robot, a policy or a person, not a camera or a
sensor.
A `hang` ends with `close`; `exit` ends the process at once with code 70, as after a crash in a native library.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from labctl import devices
from labctl.devices import Kind
from labctl.drivers.sim.options import Faults
from labctl.errors import DeviceLost, DeviceRefused, InputError

EXIT_CODE = 70


class Faulty:
    """A device or controller that is the wrapped one in all but one verb, from a given call of it on. `around` makes
    one.
    """

    kind: Kind = "faults"

    def __init__(self, inner: Any, verb: str, after: int, fault: str, delay_s: float) -> None:
        self._inner = inner
        self._verb, self._left, self._fault, self._delay_s = verb, after, fault, delay_s
        self._closed = threading.Event()
        for name in _shown(inner):
            if callable(found := getattr(inner, name)):
                setattr(self, name, self._cued if name == verb else found)

    @classmethod
    def around(cls, inner: Any, verb: str, after: int, fault: str, delay_s: float) -> Faulty:
        """What the wrapped one says of itself is read as it is then: much of it is known only once it has loaded."""
        # no __getattr__: a runtime check against a Protocol looks only at what is really there
        said = {name: _read(name) for name in _shown(inner) if not callable(getattr(inner, name))}
        return type(cls.__name__, (cls,), said)(inner, verb, after, fault, delay_s)

    def _cued(self, *args: Any, **kwargs: Any) -> Any:
        if self._left > 0:
            self._left -= 1
        else:
            self._strike()
        return getattr(self._inner, self._verb)(*args, **kwargs)

    def _strike(self) -> None:
        text = f"fault on cue in {self._verb}"
        if self._fault == "raise":
            raise DeviceLost(text)
        if self._fault == "refuse":
            raise DeviceRefused(text)
        if self._fault == "exit":
            os._exit(EXIT_CODE)
        self._closed.wait(self._delay_s if self._fault == "delay" else None)

    def close(self) -> None:
        """Let go of a hanging call and close the wrapped device."""
        self._closed.set()
        self._inner.close()


def _shown(inner: Any) -> list[str]:
    """The names of what is taken over from the wrapped one."""
    return [name for name in dir(inner) if not name.startswith("_") and name not in ("kind", "close")]


def _read(name: str) -> property:
    return property(lambda self: getattr(self._inner, name))


def build(options: Faults, **given: Any) -> Faulty:
    """The wrapped driver, built with the same givens. Raises InputError for a verb that it has not."""
    inner, verb = devices.load(options.driver, options.driver_options, **given), options.verb
    if verb not in _shown(inner) or not callable(getattr(inner, verb)):
        raise InputError(f"faults: {options.driver!r} has no verb {verb!r} that could fail")
    return Faulty.around(inner, verb, options.after, options.fault, options.delay_s)
