"""[witness]: a vision-language model that says of each scored episode how it went, beside the assessors and never for
them.

May not: ask it, or hold its key: the environment does.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import Field, model_validator

from labctl.config.alerts import Address
from labctl.config.toml_text import Table
from labctl.config.values import Text, Variable

MOST_PICTURES = 24
_PARTS = re.compile(r"(?P<scheme>https?)://(?P<host>\[[^\]@/?#]+\]|[^\[\]@:/?#]+)(:\d+)?(/[^?#@]*)?")


class Witness(Table):
    """[witness]: model: as the endpoint knows it; url: the root of an OpenAI-compatible API, on this machine or by
    https; key_env: the environment variable that holds its key; pictures: of each camera and episode.
    """

    model: Text
    url: Address
    key_env: Variable | None = None
    pictures: Annotated[int, Field(ge=2, le=MOST_PICTURES)] = 6

    @model_validator(mode="after")
    def _address(self) -> Witness:
        parts = _PARTS.fullmatch(self.url)
        if parts is None:
            raise ValueError("url holds a name, a password or a query; a key stands in the variable that key_env names")
        if parts["scheme"] != "https" and not _loopback(parts["host"].strip("[]")):
            raise ValueError("url leads to another machine without https; name https://… or one on 127.0.0.1")
        return self


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
