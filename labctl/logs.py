"""Logs of processes: one file each, every line with its time (UTC) and level, turned over when it grows long.

May not: make whoever logs wait. Lines go by a queue to a thread that writes; what finds it full is dropped and counted.
Where logs lie, what is in them and how long they are kept: docs/logs.md. An arm's name goes to a log in the seal alone.
"""

from __future__ import annotations

import atexit
import faulthandler
import io
import json
import logging
import logging.handlers
import os
import queue
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

LEVEL = "LABCTL_LOG"  # debug, info, warning or error: what is kept, in this process and those started from here
LEVELS = ("debug", "info", "warning", "error")
AS_JSON = "LABCTL_LOG_FORMAT"  # json: each line of a log's file is a JSON document
BYTES, FILES = 5_000_000, 4  # a log's file, and how many older ones lie beside it as NAME.log.1 …
WAITING = 1000  # lines that wait for the disk; further ones are dropped
PATIENCE_S = 2.0
REST_S = 1.0
FORM = "%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)s: %(message)s"
STDERR = "stderr"  # the logger of what libraries print


class _Form(logging.Formatter):
    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__(FORM, "%Y-%m-%dT%H:%M:%S")


class _Lines(_Form):
    """Each record as a JSON document in a line: time (UTC), level, logger, process and text, with an error's trace."""

    def format(self, record: logging.LogRecord) -> str:
        said = {"time": f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03d}Z", "level": record.levelname}
        said |= {"logger": record.name, "process": record.process, "text": record.getMessage()}
        return json.dumps(said, ensure_ascii=False)


def _form() -> logging.Formatter:
    return _Lines() if os.environ.get(AS_JSON, "").lower() == "json" else _Form()


class LogFile(logging.handlers.RotatingFileHandler):
    """A log that its owner alone reads. A disk that takes nothing costs lines, and never the process: they are counted
    in `failed`.
    """

    def __init__(self, path: Path, most: int = BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.failed = 0
        super().__init__(path, maxBytes=most, backupCount=FILES, encoding="utf-8", delay=True, errors="replace")
        self.setFormatter(_form())

    def _open(self) -> io.TextIOWrapper:
        def private(name: str, flags: int) -> int:
            return os.open(name, flags, 0o600)

        held = open(self.baseFilename, "ab", opener=private)  # noqa: SIM115  # closed by the handler
        return io.TextIOWrapper(held, encoding=self.encoding, errors=self.errors)

    def close(self) -> None:
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:
        self.failed += 1


class Dropping(logging.handlers.QueueHandler):
    """Puts a record into a queue, or drops and counts it where the queue is full."""

    lost = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.lost += 1


class _Writing(threading.Thread):
    """Writes what is queued until a None; says of dropped lines how many there were."""

    def __init__(self, by: Dropping, lines: queue.Queue[logging.LogRecord | None], to: logging.Handler) -> None:
        super().__init__(name="log", daemon=True)
        self._by, self._lines, self._to = by, lines, to

    def run(self) -> None:
        while (record := self._lines.get()) is not None:
            self._to.emit(record)
            lost, self._by.lost = self._by.lost, 0
            if lost:
                text = f"{lost} lines dropped: they came faster than they are written"
                self._to.emit(logging.LogRecord("logs", logging.WARNING, "", 0, text, None, None))


@dataclass(slots=True)
class Log:
    """A log that has begun, of this process; `end` writes what waits."""

    file: LogFile
    by: Dropping
    writing: _Writing
    lines: queue.Queue[logging.LogRecord | None]
    ended: bool = False

    def end(self) -> None:
        """Write what waits, and end; of a disk that hangs for PATIENCE_S what waits is lost. To be called before the
        process ends.
        """
        if self.ended:
            return
        self.ended = True
        logging.getLogger().removeHandler(self.by)
        with suppress(queue.Full):
            self.lines.put(None, timeout=PATIENCE_S)
            self.writing.join(PATIENCE_S)
            self.file.close()


def appended(path: Path, most: int = BYTES) -> BinaryIO:
    """A log for a process that prints, open at its end for its owner alone; one that has `most` bytes is turned over
    first, as `LogFile` does. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size >= most:
        before = LogFile(path, most)
        before.doRollover()
        before.close()
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def level() -> int:
    """What is kept, by $LABCTL_LOG; a word that it does not know keeps the usual."""
    named = os.environ.get(LEVEL, "info").lower()
    return getattr(logging, named.upper()) if named in LEVELS else logging.INFO


def begin(path: Path, *, waiting: int = WAITING, most: int = BYTES) -> Log:
    """Have everything that is logged in this process written to a file."""
    logging.raiseExceptions = False
    file = LogFile(path, most)
    lines: queue.Queue[logging.LogRecord | None] = queue.Queue(waiting)
    by = Dropping(lines)
    writing = _Writing(by, lines, file)
    root = logging.getLogger()
    root.addHandler(by)
    root.setLevel(min(level(), root.level or logging.WARNING))
    writing.start()
    log = Log(file, by, writing, lines)
    atexit.register(log.end)
    return log


def on_screen(stream: TextIO) -> None:
    """Have it printed too, for --verbose."""
    shown = logging.StreamHandler(stream)
    shown.setFormatter(_Form())
    logging.getLogger().addHandler(shown)
    logging.getLogger().setLevel(level())


class Words:
    """What a process and its libraries print, by a pipe, each line with its time in a log of its own: read by whoever
    started it, so that the last words of one that aborts are kept.
    """

    def __init__(self, name: str, path: Path, *, waits: bool = False) -> None:
        """waits: whoever prints faster than is read waits, for programs that take a full pipe for an error."""
        self._reads, self.writes = os.pipe()
        os.set_blocking(self.writes, waits)  # else a library that prints more than is read loses it, and goes on
        self._reader = threading.Thread(target=self._read, args=(name, path), name="printed", daemon=True)

    def started(self) -> None:
        """The process has its end now."""
        os.close(self.writes)
        self._reader.start()

    def rest(self) -> None:
        """It has ended: wait until what it printed last is written, if nobody else holds its pipe."""
        self._reader.join(REST_S)

    def _read(self, name: str, path: Path) -> None:
        file: LogFile | None = None
        with open(self._reads, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123  # a pipe has no path
            for line in lines:
                if line.strip():
                    file = file or LogFile(path)
                    file.emit(logging.LogRecord(name, logging.WARNING, "", 0, "%s", (line.rstrip(),), None))
        if file is not None:
            file.close()


def printed_beside(path: Path) -> Path:
    """Where what a process prints is kept, beside its log."""
    return path.with_name(f"{path.stem}.printed{path.suffix}")


def begin_child(name: str, path: Path) -> Log:
    """The log of a process that a supervisor started, of what it logs and what Python prints in it. Of a crash within a
    library the stacks of all threads are printed.
    """
    log = begin(path)
    faulthandler.enable(2)  # standard error itself, whatever stands in its place in Python
    sys.stderr = sys.stdout = _Printed(logging.getLogger(f"{name}.{STDERR}"))
    logging.getLogger(name).info("begun, process %d", os.getpid())
    return log


class _Printed(io.TextIOWrapper):
    """Python's own standard error, line by line into the log: never by the pipe, which may be full."""

    def __init__(self, to: logging.Logger) -> None:
        super().__init__(io.BytesIO())
        self._to, self._begun = to, ""

    def write(self, s: str) -> int:
        *whole, self._begun = f"{self._begun}{s}".split("\n")
        for line in whole:
            if line.strip():
                self._to.warning("%s", line)
        return len(s)
