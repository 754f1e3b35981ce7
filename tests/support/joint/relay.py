"""A relay between two hosts that delays, loses and cuts, as a process of its own: netem is not to be had everywhere.

`python -m` is not needed: `relay(listen, to)` starts it; lines to its standard input change what it does: "delay S"
(each way), "lose P" (a connection is swallowed with this chance after some bytes, and never ends), "cut", "join".
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


class Relay:
    """The process, from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, line: str) -> None:
        """Takes effect at once, for connections that are there too."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


@contextmanager
def relay(
    listen: tuple[str, int], to: tuple[str, int], *, seed: int = 0, within: Sequence[str] = ()
) -> Iterator[Relay]:
    """within: words before the command (`ip netns exec NAME`)."""
    words = [*within, sys.executable, str(Path(__file__)), *map(str, listen), *map(str, to), str(seed)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "ready"
        yield Relay(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


class _Link:
    def __init__(self, to: tuple[str, int], seed: int) -> None:
        self._to, self._chance = to, random.Random(seed)
        self._delay_s, self._lose, self._is_cut = 0.0, 0.0, False
        self._open: set[asyncio.StreamWriter] = set()

    def obey(self, line: str) -> None:
        word, _, value = line.strip().partition(" ")
        if word == "delay":
            self._delay_s = float(value)
        elif word == "lose":
            self._lose = float(value)
        elif word in ("cut", "join"):
            self._is_cut = word == "cut"
            for writer in self._open if self._is_cut else ():
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        with suppress(OSError):
            there, here = await asyncio.open_connection(*self._to)
            swallowed = self._chance.random() < self._lose
            after = self._chance.randrange(2000) if swallowed else -1
            self._open |= {writer, here}
            try:
                await asyncio.gather(self._copy(reader, here, after), self._copy(there, writer, after))
            finally:
                self._open -= {writer, here}
                for one in (writer, here):
                    one.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, after: int) -> None:
        passed = 0
        while block := await reader.read(4096):
            passed += len(block)
            await asyncio.sleep(self._delay_s)
            if after < 0 or passed <= after:
                writer.write(block)
                await writer.drain()
        writer.close()


async def _main(host: str, port: int, link: _Link) -> None:
    server = await asyncio.start_server(link.serve, host, port)
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    async with server:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            link.obey(line)


if __name__ == "__main__":
    listen_host, listen_port, to_host, to_port, given_seed = sys.argv[1:]
    asyncio.run(_main(listen_host, int(listen_port), _Link((to_host, int(to_port)), int(given_seed))))
