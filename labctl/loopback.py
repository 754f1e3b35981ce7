"""This computer's own address, whether a browser that asks a page here was led by another site, and what it brings.

May not: open a socket, or know what a page shows.

A name of another site may lead to 127.0.0.1 (DNS rebinding): its pages then read what is here as their own. The browser
says by which name it asked, in Host, and which page asked, in Origin.
"""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
FOREIGN_HOST = f"ask for {LOOPBACK}"
FOREIGN_PAGE = "another page may not ask here"


def own_host(host: str | None, port: int) -> bool:
    """Is this Host, as a browser sends it, a name of loopback with this port?"""
    return host in {f"{name}:{port}" for name in NAMES}


def own_name(host: str, *others: str) -> bool:
    """Does this Host name loopback, or one of the others, at whatever port a tunnel (ssh -L) began?"""
    try:
        return urlsplit(f"//{host}").hostname in (*NAMES, *others)
    except ValueError:
        return False


def same_secret(given: str, secret: str) -> bool:
    """Is what a browser brings this secret? Any text may come, also halves of surrogate pairs, as aiohttp reads bytes
    that are no UTF-8. Takes as long whatever differs.
    """
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode())


def refusal(host: str | None, origin: str | None, site: str | None) -> str | None:
    """Why a request to a page here is not answered, from what its headers Host, Origin and Sec-Fetch-Site say; None for
    one that this computer's own page makes, or a person who types its address, here or at the other end of a tunnel
    that may begin at another port (`own_name`): a page on another port is another Origin all the same.
    """
    if not own_name(host or ""):
        return FOREIGN_HOST
    if (origin is not None and origin != f"http://{host}") or site not in (None, "same-origin", "none"):
        return FOREIGN_PAGE
    return None
