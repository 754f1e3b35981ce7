"""An S3 server of a test's own: Ceph's object gateway (radosgw) over one monitor and one store in memory, Debian's
binaries as ordinary processes on free loopback ports; killed, stopped and restarted at will.

May not: write outside its folder, or be reached from elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from support.machine.postgres import free_port
from support.machine.processes import end_with_parent

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool", "ceph-authtool")
SECRET = "not-in-any-log-51c2"
REGION = "default"
CLOCK = MonotonicClock()
PATIENCE_S = 90.0

needs_s3 = [
    pytest.mark.skipif(
        not all(shutil.which(name) for name in PROGRAMS),
        reason="Ceph is not installed (Debian: radosgw, ceph-mon, ceph-osd, ceph-base, ceph-common)",
    ),
    pytest.mark.skipif(find_spec("s3fs") is None, reason="labctl[media] is not installed"),
]

CONFIGURATION = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon}]
mon initial members = a
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
mon data avail warn = 2
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
run dir = {folder}/run
admin socket = {folder}/run/$name.$pid.asok
log file = {folder}/run/$name.log
mon data = {folder}/mon
osd data = {folder}/osd
client mount timeout = 30
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw thread pool size = 16
rgw user quota bucket sync interval = 1
rgw bucket quota ttl = 1
rgw lc debug interval = 86400
"""


class Ceph:
    """One cluster in a folder, its gateway at `endpoint`. Keys of users are made by `user`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self._mon = folder, free_port(), free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._conf = folder / "ceph.conf"
        self._running: list[subprocess.Popen[bytes]] = []
        self._gateway: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """A new cluster, with its gateway answering."""
        for name in ("mon", "osd", "rgw", "run"):
            (self.folder / name).mkdir(parents=True)
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        text = CONFIGURATION.format(fsid=fsid, folder=self.folder, mon=self._mon, port=self.port)
        self._conf.write_text(text)
        keys, every = str(self.folder / "keyring"), "allow *"
        self.program("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{self._mon}]",
                     str(self.folder / "monmap"))  # fmt: skip
        self.program("ceph-authtool", "--create-keyring", keys, "--gen-key", "-n", "mon.", "--cap", "mon", every)
        self.program("ceph-authtool", keys, "--gen-key", "-n", "client.admin", "--cap", "mon", every, "--cap", "osd",
                     every, "--cap", "mgr", every)  # fmt: skip
        self.program("ceph-mon", "--mkfs", "-i", "a", "--monmap", str(self.folder / "monmap"), "--keyring", keys)
        self._begin("ceph-mon", "-i", "a")
        self.program("ceph-authtool", keys, "--gen-key", "-n", "osd.0", "--cap", "mon", "allow profile osd", "--cap",
                     "osd", every)  # fmt: skip
        secret = self.program("ceph-authtool", keys, "-n", "osd.0", "-p").strip()
        told = self.folder / "osd.json"
        told.write_text(json.dumps({"cephx_secret": secret}))
        self.program("ceph", "--connect-timeout", "60", "osd", "new", osd, "0", "-i", str(told))
        self.program("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._begin("ceph-osd", "-i", "0")
        self.start()

    def program(self, name: str, *words: str) -> str:
        done = subprocess.run(
            [name, *words, *(() if name in ("monmaptool", "ceph-authtool") else ("-c", str(self._conf)))],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{name} {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def _begin(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / "run" / f"{name}.out").open("ab") as out:
            started = subprocess.Popen(
                [name, "-f", *words, "-c", str(self._conf)], stdout=out, stderr=out, preexec_fn=end_with_parent
            )
        self._running.append(started)
        return started

    def start(self) -> None:
        """Start the gateway, until it answers."""
        self._gateway = self._begin("radosgw", "-n", "client.admin")
        until = CLOCK.now_ns() + round(PATIENCE_S * SECOND)
        while True:
            with suppress(URLError, ConnectionError, TimeoutError), urlopen(self.endpoint, timeout=2):
                return
            assert self._gateway.poll() is None and CLOCK.now_ns() < until, self.said()
            CLOCK.sleep_until(CLOCK.now_ns() + 50 * MILLISECOND)

    def kill(self) -> None:
        """kill -9 of the gateway: what it had acknowledged is in the cluster."""
        assert self._gateway is not None
        self._gateway.send_signal(signal.SIGKILL)
        self._gateway.wait()

    def freeze(self, still: bool) -> None:
        """Whether the gateway stands still: it takes connections and answers nothing."""
        assert self._gateway is not None
        self._gateway.send_signal(signal.SIGSTOP if still else signal.SIGCONT)

    def said(self) -> str:
        """The end of what its processes said."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in (self.folder / "run").glob("*.out"))

    def user(self, name: str) -> None:
        """A user whose key is its name, and whose secret is SECRET."""
        self.program("radosgw-admin", "user", "create", f"--uid={name}", f"--display-name={name}",
                     f"--access-key={name}", f"--secret-key={SECRET}")  # fmt: skip

    def quota(self, user: str, size: int) -> None:
        """No more than so many bytes of this user's; below 0 without end."""
        scope = ("--quota-scope=user", f"--uid={user}")
        self.program("radosgw-admin", "quota", "set", *scope, f"--max-size={size}")
        self.program("radosgw-admin", "quota", "enable" if size >= 0 else "disable", *scope)

    def end(self) -> None:
        for one in reversed(self._running):
            with suppress(ProcessLookupError):
                one.send_signal(signal.SIGCONT)
                one.kill()
            one.wait()


@contextmanager
def cluster() -> Iterator[Ceph]:
    """A cluster with the user "lab", gone afterwards; in a folder of a short name, for its sockets."""
    with tempfile.TemporaryDirectory(prefix="ceph-", dir=os.environ.get("TMPDIR", "/tmp")) as name:
        made = Ceph(Path(name))
        try:
            made.make()
            made.user("lab")
            yield made
        finally:
            made.end()
