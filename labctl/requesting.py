"""HTTP requests that carry what is for one server alone: pictures, a token, times of a lab.

May not: follow a redirect. The server that was named gets it, and no other.
"""

from __future__ import annotations

import urllib.request
from functools import cache
from http.client import HTTPMessage, HTTPResponse
from typing import IO


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


@cache
def _opener() -> urllib.request.OpenerDirector:
    """Made once: it reads the machine's certificates, 25 ms of CPU."""
    return urllib.request.build_opener(_NoRedirect)


def answer_of(request: urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """The answer, to be read and closed. Raises what urllib.request does; HTTPError for a redirect too."""
    return _opener().open(request, timeout=timeout_s)
