"""An emulated scale on a pseudo-terminal: it answers MT-SICS as a scale on a serial line does.

May not: be taken for a scale: its answer to I2, who it is, says "labctl emulator". For tests and to try a cell without.
"""

from __future__ import annotations

import contextlib
import os
import threading
import tty

ABOUT = "labctl emulator of a scale"


class EmulatedScale:
    """Answers on `port` until closed. `grams` and `stands` may be set at any time; fault: "" or "silent", "overload",
    "broken" (answers break off), "unit" (it weighs in pieces).
    """

    def __init__(self, grams: float = 0.0) -> None:
        self.grams, self.stands, self.fault = grams, True, ""
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.port = os.ttyname(self._theirs)
        self._thread = threading.Thread(target=self._serve, name="emulated-scale", daemon=True)
        self._thread.start()

    def answer(self, asked: str) -> str:
        """What the scale says to one line, without its end."""
        if asked == "I2":
            return f'I2 A "{ABOUT}"'
        if asked != "SI":
            return "ES"
        if self.fault == "overload":
            return "S +"
        unit = "PCS" if self.fault == "unit" else "g"
        return f"S {'S' if self.stands else 'D'} {self.grams:10.2f} {unit}"

    def _serve(self) -> None:
        left = b""
        while True:
            try:
                left += os.read(self._ours, 256)
            except OSError:
                return
            *lines, left = left.split(b"\n")
            for line in lines:
                if self.fault == "silent":
                    continue
                answered = self.answer(line.decode("ascii", "replace").strip()).encode()
                end = b"" if self.fault == "broken" else b"\r\n"
                try:
                    os.write(self._ours, answered + end)
                except OSError:
                    return

    def close(self) -> None:
        """It is unplugged."""
        os.close(self._theirs)
        self._thread.join(0.1)
        with contextlib.suppress(OSError):
            os.close(self._ours)
        self._thread.join(1.0)
