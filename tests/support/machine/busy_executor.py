"""An executor whose one process is busy, to see what is done meanwhile by whoever asked it.

May not: run what it has not taken.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future


class Behind(Executor):
    """A process that is at its first work and has taken the second: neither is done before all others are."""

    def __init__(self):
        self.asked = []

    def submit(self, fn, /, *args, **kwargs):
        taken = Taken(self, fn, args) if len(self.asked) < 2 else Future()
        self.asked.append((fn.__name__, taken))
        return taken

    def left(self):
        return [name for name, one in self.asked if not isinstance(one, Taken) and not one.cancelled()]


class Taken(Future):
    def __init__(self, behind, fn, args):
        super().__init__()
        self.set_running_or_notify_cancel()
        self.behind, self.work = behind, (fn, args)

    def result(self, timeout=None):
        assert not self.behind.left()
        fn, args = self.work
        return fn(*args)
