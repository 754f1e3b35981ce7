"""`labctl console --web`: the console in a browser on this machine.

May not: listen beyond loopback without saying so.
"""

from __future__ import annotations

import ipaddress
import shlex
import socket
import sys
from pathlib import Path

import click


def serve(folder: Path, who: str, *, read_only: bool, host: str, port: int) -> None:
    """Serve the console of a running campaign until Ctrl-C. Raises StateError when none is running, MissingExtra."""
    from labctl.errors import InputError, MissingExtra
    from labctl.runtime.attach import Attachment

    Attachment(folder, read_only=True).close()  # refuse at once what every tab would refuse
    try:
        from labctl.ui.console import web as module
    except ModuleNotFoundError as error:
        raise MissingExtra("web", "the console in a browser") from error
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InputError(f"--host is {host!r}; give an address such as 127.0.0.1") from None
    if not loopback:
        click.echo(f"warning: {host} is not loopback: anybody on that network who learns the token can act", err=True)
    command = [sys.executable, "-P", "-c", "from labctl.cli import main; main()", "console", str(folder), "--who", who]
    command += ["--read-only"] if read_only else []
    server = module.TokenServer(shlex.join(command), host, port or free_port(host), folder.name, click.echo)
    server.serve()


def free_port(host: str) -> int:
    """A port that is free on an address now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]
