"""TLS in front of a port, with an authority of a test's own and certificates that are good or are not.

May not: be reached from another computer.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGUN, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """One that signs certificates. root: the PEM file to trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder, self.root, self._key = folder, folder / "root.pem", ec.generate_private_key(ec.SECP256R1())
        self._name = _named(f"authority {folder.name}")
        self.root.write_bytes(self._signed(self._name, self._key.public_key(), None, days=36500))

    def _signed(self, name: x509.Name, key: ec.EllipticCurvePublicKey, host: str | None, *, days: int) -> bytes:
        made = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key)
        made = made.serial_number(x509.random_serial_number())
        made = made.not_valid_before(BEGUN).not_valid_after(BEGUN + days * DAY)
        made = made.add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        if host is not None:
            address = x509.IPAddress(ipaddress.ip_address(host))
            made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def signs(self, host: str = "127.0.0.1", *, days: int = 36500) -> Path:
        """A file with a key and a certificate for this address, from 2026 on for so many days."""
        key = ec.generate_private_key(ec.SECP256R1())
        path = self._folder / f"{host}-{days}.pem"
        form = serialization.PrivateFormat.PKCS8
        data = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        path.write_bytes(data + self._signed(_named(host), key.public_key(), host, days=days))
        return path


@contextmanager
def in_front(certificate: Path, to: int | None) -> Iterator[int]:
    """A port of loopback that speaks TLS and leads to the port `to`; None: to whoever says yes to everything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as at_end:
        thread = threading.Thread(target=_accept, args=(listener, context, to), daemon=True)
        thread.start()
        at_end.callback(thread.join)
        at_end.callback(listener.shutdown, socket.SHUT_RDWR)
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, context: ssl.SSLContext, to: int | None) -> None:
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            threading.Thread(target=_serve, args=(near, context, to), daemon=True).start()


def _serve(plain: socket.socket, context: ssl.SSLContext, to: int | None) -> None:
    with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as near:
        if to is None:
            while near.recv(65536):
                near.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", to)) as far:
            back = threading.Thread(target=_pass, args=(far, near), daemon=True)
            back.start()
            _pass(near, far)
            back.join()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
