"""A PostgreSQL server of a test's own: made, started, killed, restored; and a relay that cuts the way to it.

Debian's binaries, as an ordinary user (root drops to `postgres`), on a free loopback port.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

FIRST_PORT, PORTS = 10_000, 20_000
_asked = itertools.count()
ADMIN, PASSWORD = "labctl_admin", "not-in-any-log-7f31"


def binary(name: str) -> str | None:
    """A server binary: on the path, or where Debian keeps the newest."""
    found = [shutil.which(name), *map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))]
    return next((path for path in reversed(found) if path), None)


needs_server = [
    pytest.mark.skipif(binary("initdb") is None, reason="PostgreSQL is not installed (Debian: postgresql)"),
    pytest.mark.skipif(find_spec("psycopg") is None, reason="labctl[postgres] is not installed"),
]


def free_port() -> int:
    """A loopback port that nobody listens on. It lies below those that the system hands out, and processes look from
    different ones on: nobody else has it by chance before whoever asked for it is there.
    """
    for _ in range(PORTS):
        port = FIRST_PORT + (197 * os.getpid() + next(_asked)) % PORTS
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"none of {PORTS} ports from {FIRST_PORT} on is free")


class Postgres:
    """One cluster in a folder. Logins take a password but the administrator's, over the socket."""

    def __init__(self, folder: Path, *, data: str = "data") -> None:
        self.folder, self.data, self.port = folder, folder / data, free_port()
        self._as: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            self._as = ["runuser", "-u", "postgres", "--"]
            folder.parent.chmod(0o711)
            shutil.chown(folder, "postgres", "postgres")

    def make(self) -> None:
        """A new cluster."""
        secret = self.folder / "secret"
        secret.write_text(PASSWORD + "\n")
        self.give(secret)
        self.program(
            "initdb",
            "-D",
            str(self.data),
            "-A",
            "scram-sha-256",
            "-U",
            ADMIN,
            f"--pwfile={secret}",
            "-E",
            "UTF8",
            "--no-sync",
        )

    def configure(self, lines: str) -> None:
        """More of postgresql.conf, from the next start on."""
        with (self.data / "postgresql.conf").open("a") as out:
            out.write(lines)

    def give(self, path: Path) -> None:
        if self._as:
            shutil.chown(path, "postgres", "postgres")

    def program(self, name: str, *words: str) -> str:
        """One of the server's programs, as its user."""
        path = binary(name)
        assert path is not None
        done = subprocess.run(
            [*self._as, path, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=self.environment(),
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8"}

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        log = self.folder / "log"
        log.touch()
        self.give(log)
        try:
            self.program("pg_ctl", "-D", str(self.data), "-o", options, "-l", str(log), "-w", "-t", "60", "start")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()[-2000:]}") from None

    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])

    def kill(self) -> None:
        """kill -9 of the server and of all that serve its connections, at once."""
        first = self.pid()
        os.kill(first, signal.SIGSTOP)  # it forks nobody while its children are counted
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in (first, *map(int, children)):
            while Path(f"/proc/{pid}").exists() and "Z" not in _state(pid):
                pass
        for held in (self.data / "postmaster.pid", self.folder / f".s.PGSQL.{self.port}.lock"):
            held.unlink(missing_ok=True)  # where nobody reaps what was killed, its number still looks alive

    def stop(self, mode: str = "immediate") -> None:
        if (self.data / "postmaster.pid").exists():
            self.program("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def url(self, user: str = ADMIN, *, port: int | None = None, database: str = "labctl") -> str:
        return f"postgresql+psycopg://{user}@127.0.0.1:{port or self.port}/{database}"

    def sql(self, script: str, *, user: str = ADMIN, database: str = "labctl") -> str:
        """What psql says to a script. Raises AssertionError with what it complains of."""
        return self.program(
            "psql",
            "-X",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            user,
            "-d",
            database,
            "-c",
            script,
        ).strip()


@contextmanager
def cluster() -> Iterator[Postgres]:
    """A new one, not started, in a folder that its own user may reach; stopped and gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="labctl-pg-"))
    made = Postgres(folder / "cluster")
    try:
        made.make()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


class Relay:
    """A port that leads to another one: open, cut (connections closed, new ones refused) or silent (nothing passes)."""

    def __init__(self, to: int) -> None:
        self._to, self.silent, self.bytes = to, False, 0
        self._ends: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.port = free_port()
        self.open()

    def open(self) -> None:
        self.silent = False
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Close the port and every connection."""
        listener, self._listener = self._listener, None
        for one in (listener, *self._ends):
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        self._ends.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    near.close()
                    continue
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.silent:
                    continue
                self.bytes += len(data)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def set_up(server: Postgres, *, logins: tuple[str, ...] = ("cell1", "cell2", "viewer")) -> None:
    """The database with labctl's tables, and logins: viewer looks, the others write."""
    from labctl.store.server.schema import script

    server.sql("CREATE DATABASE labctl", database="postgres")
    path = server.folder / "labctl.sql"
    path.write_text(script())
    server.give(path)
    words = (
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        "127.0.0.1",
        "-p",
        str(server.port),
        "-U",
        ADMIN,
        "-d",
        "labctl",
    )
    server.program("psql", *words, "-f", str(path))
    for login in logins:
        role = "labctl_reader" if login == "viewer" else "labctl_writer"
        server.sql(f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}' IN ROLE {role}")
