"""The ways an alert leaves the cell: an ntfy topic, a webhook, e-mail.

May not: say an address, a token, a password or a server's words in an error: what fails here is logged where others
read, so an error names the way and what kind of failure it was.
"""

from __future__ import annotations

import json
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from http.client import HTTPException

from labctl.alerts.watch import Alert
from labctl.config.alerts import AlertsTable, EmailTable, PostTable
from labctl.errors import InputError, StateError
from labctl.requesting import answer_of

URGENT = {"stop": "urgent", "fault": "urgent", "hold": "high"}  # ntfy's priorities; "default" for the others
WRITTEN = "write it as name@domain or Name <name@domain>, with quotes around a name that has a comma"
Send = Callable[[Alert], None]


def ways(table: AlertsTable, environment: Mapping[str, str]) -> dict[str, Send]:
    """By name, a function that sends an alert and raises StateError where it did not arrive.

    Raises InputError for a variable that the environment has not.
    """
    found: dict[str, Send] = {}
    if table.ntfy is not None:
        found["ntfy"] = _ntfy(_address(table.ntfy, environment), _token(table.ntfy, environment), table.timeout_s)
    if table.webhook is not None:
        address, token = _address(table.webhook, environment), _token(table.webhook, environment)
        found["webhook"] = _webhook(address, token, table.timeout_s)
    if table.email is not None:
        found["email"] = _email(table.email, _value(table.email.password_env, environment), table.timeout_s)
    return found


def _ntfy(address: str, token: str | None, timeout_s: float) -> Send:
    def send(alert: Alert) -> None:
        title = alert.title.encode("ascii", "replace").decode()
        headers = {"Title": title, "Priority": URGENT.get(alert.kind, "default"), "Tags": alert.kind}
        _post(address, alert.text.encode(), {**headers, "Content-Type": "text/plain; charset=utf-8"}, token, timeout_s)

    return send


def _webhook(address: str, token: str | None, timeout_s: float) -> Send:
    def send(alert: Alert) -> None:
        body = {"schema": "labctl.alert/1", "kind": alert.kind, "title": alert.title, "text": alert.text}
        _post(address, json.dumps(body).encode(), {"Content-Type": "application/json"}, token, timeout_s)

    return send


def _post(address: str, body: bytes, headers: Mapping[str, str], token: str | None, timeout_s: float) -> None:
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(address, data=body, headers={**headers, **bearer}, method="POST")
        with answer_of(request, timeout_s) as answer:
            answer.read(1024)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise StateError(f"the server answered {error.code}") from None
    except urllib.error.URLError as error:
        raise StateError(f"it cannot be reached ({_named(error.reason)})") from None
    except HTTPException as error:  # its words are not repeated
        raise StateError(f"what answers there speaks no HTTP ({type(error).__name__})") from None
    except (OSError, ValueError, OverflowError) as error:  # the last of a size that no memory has
        raise StateError(f"it cannot be reached ({_named(error)})") from None


def _email(table: EmailTable, password: str | None, timeout_s: float) -> Send:
    def send(alert: Alert) -> None:
        for key, line in (("sender", table.sender), *(("to", one) for one in table.to)):
            if not mailbox(line):
                raise StateError(f"{key} of [alerts.email] in lab.toml is no mail address that can be read; {WRITTEN}")
        try:
            message = EmailMessage()
            message["Subject"], message["From"], message["To"] = alert.title, table.sender, ", ".join(table.to)
            message.set_content(alert.text + "\n")
            with _server(table, timeout_s) as server:
                if table.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if table.user is not None and password is not None:
                    server.login(table.user, password)
                server.send_message(message)
        except smtplib.SMTPResponseException as error:
            raise StateError(f"the server answered {error.smtp_code} ({_named(error)})") from None
        except Exception as error:  # Python's mail has its own: it trips over addresses and texts in several ways
            raise StateError(f"it cannot be sent ({_named(error)})") from None

    return send


def mailbox(line: str) -> bool:
    """Whether Python's mail reads one or several addresses out of it, each with somebody and a domain; a word alone is
    a mailbox of the server's own.
    """
    message = EmailMessage()
    try:
        message["To"] = line
        found = message["To"].addresses
    except Exception:  # of a half-typed one an IndexError, of others several more
        return False
    by_itself = line.strip().isidentifier()
    return bool(found) and all(one.username and (one.domain or by_itself) for one in found)


def _server(table: EmailTable, timeout_s: float) -> smtplib.SMTP:
    if table.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(table.server, table.port, timeout=timeout_s, context=context)
    return smtplib.SMTP(table.server, table.port, timeout=timeout_s)


def _named(error: BaseException | str) -> str:
    """The class of an error: its text may hold an address or what a server said."""
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__


def _address(table: PostTable, environment: Mapping[str, str]) -> str:
    address = table.address or _value(table.address_env, environment) or ""
    if not address.startswith(("http://", "https://")):
        raise InputError(f"${table.address_env} holds no address that begins with http:// or https://")
    return address


def _token(table: PostTable, environment: Mapping[str, str]) -> str | None:
    return _value(table.token_env, environment)


def _value(name: str | None, environment: Mapping[str, str]) -> str | None:
    """What an environment variable holds; None for no name. Raises InputError that names the variable alone."""
    if name is None:
        return None
    if not environment.get(name):
        raise InputError(f"[alerts] of lab.toml names the environment variable {name}, which is not set")
    return environment[name]
