"""[alerts] of lab.toml: of what people who are not at the cell get messages, and by which ways.

May not: hold a password, or read the environment that names one.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints, model_validator

from labctl.config.toml_text import Table
from labctl.config.values import Lax, Text, Variable

AlertKind = Literal["hold", "fault", "stop", "block", "night", "queue"]
KINDS: tuple[AlertKind, ...] = get_args(AlertKind)
Address = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+\S*$")]
Line = Annotated[Text, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$")]  # of a mail's head


class PostTable(Table):
    """[alerts.ntfy] or [alerts.webhook]: one of `address` and `address_env`, the environment variable that holds it (an
    address may be a secret itself); token_env: the variable that holds a bearer token.
    """

    address: Address | None = None
    address_env: Variable | None = None
    token_env: Variable | None = None

    @model_validator(mode="after")
    def _one_address(self) -> PostTable:
        if (self.address is None) == (self.address_env is None):
            raise ValueError("give one of address and address_env")
        return self


class EmailTable(Table):
    """[alerts.email]: `user` logs in with what the environment variable `password_env` holds."""

    server: Text
    port: Annotated[int, Field(gt=0, lt=65536)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: Text | None = None
    password_env: Variable | None = None
    sender: Line
    to: Annotated[tuple[Line, ...], Lax, Field(min_length=1)]

    @model_validator(mode="after")
    def _whole_login(self) -> EmailTable:
        if (self.user is None) != (self.password_env is None):
            raise ValueError("user and password_env go together")
        return self


class AlertsTable(Table):
    """[alerts]: on: of what; hold_s: how long a hold stands before its message is sent (that of a stop or a fault is at
    once); timeout_s: how long an answer is waited for.
    """

    on: Annotated[tuple[AlertKind, ...], Lax, Field(min_length=1)] = KINDS
    hold_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0
    ntfy: PostTable | None = None
    webhook: PostTable | None = None
    email: EmailTable | None = None

    @model_validator(mode="after")
    def _some_way(self) -> AlertsTable:
        if self.ntfy is None and self.webhook is None and self.email is None:
            raise ValueError("give [alerts.ntfy], [alerts.webhook] or [alerts.email]")
        return self
