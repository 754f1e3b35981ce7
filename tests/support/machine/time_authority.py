"""A time-stamping authority on loopback, of openssl's `ts`: it stamps what it is asked, or behaves badly."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

AVAILABLE = shutil.which("openssl") is not None
CONFIG = """
[tsa]
default_tsa = here
[here]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
tsa_name = yes
"""
ONE_AT_A_TIME = threading.Lock()
EXTENSIONS = "extendedKeyUsage = critical,timeStamping\nkeyUsage = critical,digitalSignature\n"


def openssl(*words: str | Path, cwd: Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass
class Authority:
    """folder: its keys; root: the certificate to trust, PEM. mood: stamps, hangs, refuses or lies (stamps another)."""

    folder: Path
    address: str = ""
    mood: str = "stamps"
    asked: int = 0
    let_go: threading.Event = field(default_factory=threading.Event)

    @property
    def root(self) -> Path:
        return self.folder / "root.pem"

    def answer(self, query: bytes) -> bytes:
        """A response to a request, both DER. One at a time: question, answer and serial number are files."""
        with ONE_AT_A_TIME:
            (self.folder / "query").write_bytes(query)
            made = self.folder / "answer"
            signer = ("-signer", "signer.pem", "-inkey", "signer.key")
            openssl("ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", *signer, "-out", made, cwd=self.folder)
            return made.read_bytes()

    def another(self) -> bytes:
        """A good response to another question."""
        openssl("ts", "-query", "-digest", "ab" * 32, "-sha256", "-cert", "-out", "other", cwd=self.folder)
        return self.answer((self.folder / "other").read_bytes())


def made(folder: Path) -> Authority:
    """Keys and certificates of a new authority in `folder`."""
    folder.mkdir(parents=True)
    (folder / "tsa.cnf").write_text(CONFIG.format(folder=folder))
    (folder / "serial").write_text("01\n")
    (folder / "extensions").write_text(EXTENSIONS)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    root = ("-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=Test root", "-days", "2")
    openssl("req", "-x509", *key, *root, cwd=folder)
    openssl("req", *key, "-keyout", "signer.key", "-out", "signer.csr", "-subj", "/CN=Test authority", cwd=folder)
    sign = ("-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial", "-extfile", "extensions", "-days", "2")
    openssl("x509", "-req", "-in", "signer.csr", *sign, "-out", "signer.pem", cwd=folder)
    return Authority(folder)


@contextmanager
def serving(authority: Authority) -> Iterator[Authority]:
    """The authority at an address of loopback, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            authority.asked += 1
            query = self.rfile.read(int(self.headers["Content-Length"]))
            if authority.mood == "hangs":
                authority.let_go.wait()
                return
            if authority.mood == "refuses":
                self.send_error(503)
                return
            found = authority.another() if authority.mood == "lies" else authority.answer(query)
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(found)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    authority.address = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield authority
    finally:
        authority.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
