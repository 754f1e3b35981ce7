"""A sensor that speaks in lines of text, on a pseudo-terminal or a TCP port of loopback, as a lab's own board does."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import tty
from collections.abc import Callable


class SpeakingLine:
    """Says what `says` gives, `hz` times a second; or, with `asked`, once for each question that it knows. `port` is
    what a cell file has. Fault: set `silent`, or give `says` another line.
    """

    def __init__(
        self, says: Callable[[], str], *, hz: float = 50.0, asked: str | None = None, tcp: bool = False
    ) -> None:
        self.says, self.silent, self._asked, self._hz = says, False, asked, hz
        self._end = threading.Event()
        if tcp:
            self._server = socket.create_server(("127.0.0.1", 0))
            self.port = f"socket://127.0.0.1:{self._server.getsockname()[1]}"
        else:
            self._ours, self._theirs = os.openpty()
            tty.setraw(self._theirs)
            self.port = os.ttyname(self._theirs)
        self._thread = threading.Thread(target=self._accept if tcp else self._pty, name="speaking-line", daemon=True)
        self._thread.start()

    def _pty(self) -> None:
        self._serve(lambda: os.read(self._ours, 256), lambda data: os.write(self._ours, data))

    def _accept(self) -> None:
        while not self._end.is_set():
            with contextlib.suppress(OSError):
                one, _ = self._server.accept()
                with one:
                    self._serve(lambda one=one: one.recv(256), one.sendall)

    def _serve(self, read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
        with contextlib.suppress(OSError):
            while not self._end.wait(0.0 if self._asked else 1 / self._hz):
                if self._asked is not None and self._asked not in read().decode().split():
                    continue
                if not self.silent:
                    write(self.says().encode() + b"\r\n")

    def close(self) -> None:
        """It is unplugged."""
        self._end.set()
        with contextlib.suppress(OSError, AttributeError):
            self._server.shutdown(socket.SHUT_RDWR)  # whoever accepts comes back
        self._thread.join(1.0)
        with contextlib.suppress(OSError, AttributeError):
            self._server.close()
        with contextlib.suppress(OSError, AttributeError):
            os.close(self._theirs)
            os.close(self._ours)
