"""How a run is ended from outside: by a signal, in order and at once, or once the trial that runs is scored.

May not: end anything itself, or decide what becomes of an episode (`runner` does).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from labctl.bus import Message
from labctl.messages.processes import EndRun, Shutdown

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LEAVE = signal.SIGUSR1  # to a run in simulated time, which has no sockets: after this trial


def on_signals(act: Callable[[Message], None]) -> Callable[[], None]:
    """Have `act` called, with a message to the run, when a signal asks for its end: a kill, Ctrl-C, a terminal that is
    gone, `LEAVE`. A hang-up that this process was started to ignore (nohup) stays ignored. Returns what puts back the
    handlers of before.

    Beside the main thread, where no handler can be set, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.getsignal(number) for number in (*ENDING, LEAVE)}
    if before[signal.SIGHUP] == signal.SIG_IGN:
        del before[signal.SIGHUP]
    for number in before:
        signal.signal(number, lambda number, _: act(_asked(number)))

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return put_back


def _asked(number: int) -> Message:
    return EndRun("labctl stop").to("run") if number == LEAVE else Shutdown().to("run", sender="@host")
