"""[store] of lab.toml names a server and never a password."""

from __future__ import annotations

import pytest

from labctl.config.cell_schema import parse_lab
from labctl.errors import InputError

GOOD = (
    "postgresql+psycopg://cell1@db.example/labctl",
    "postgresql+psycopg://cell1@db.example:5433/labctl?sslmode=verify-full",
    "postgresql+psycopg://?service=labctl",
    "postgresql+psycopg:///labctl?host=/run/postgresql",
    "postgresql+psycopg://cell1@[::1]:5432/labctl",
)


@pytest.mark.parametrize("url", GOOD)
def test_a_server_is_named_by_its_url(url: str) -> None:
    store = parse_lab(f'[store]\nurl = "{url}"\n', "lab.toml").store
    assert store is not None and store.url == url and store.timeout_s == 10.0


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://cell1:hush-99@db.example/labctl",
        "postgresql+psycopg://cell1:hush-99@@db.example/labctl",
        "postgresql+psycopg://cell1:hush/-99@db.example/labctl",
        "postgresql+psycopg://:hush-99@db.example/labctl",
        "postgresql+psycopg://cell1@db.example/labctl?password=hush-99",
        "postgresql+psycopg://cell1@db.example/labctl?sslmode=require&PassWord=hush-99",
        "postgresql+psycopg://cell1@db.example/labctl?sslpassword=hush-99",
        "postgresql+psycopg://cell1%3Ahush-99@db.example/labctl",
        "postgresql+psycopg://db.example/labctl?p%61ssword=hush-99",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError, match="PGPASSFILE") as refused:
        parse_lab(f'people = ["p01"]\n[store]\nurl = "{url}"\n', "lab.toml")
    assert str(refused.value).startswith("lab.toml:3: store.url: ") and "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///lab.db",
        "mysql://db.example/labctl",
        "postgresql+psycopg://",
        "db.example",
        "postgresql+psycopg://a b/c",
    ],
)
def test_what_is_no_server_is_refused_with_what_one_looks_like(url: str) -> None:
    with pytest.raises(InputError, match=r"lab.toml:2: store.url: .*postgresql\+psycopg://USER@HOST"):
        parse_lab(f'[store]\nurl = "{url}"\n', "lab.toml")


@pytest.mark.parametrize("place", ["cell1@db%lab/labctl", "[::1/labctl", "cell1@db/labctl?host=%2", "db%00/labctl"])
def test_an_address_that_libpq_cannot_read_is_refused_with_the_file(place: str) -> None:
    with pytest.raises(InputError, match=r"lab.toml:2: store.url: the address has a %.* or a \[") as refused:
        parse_lab(f'[store]\nurl = "postgresql+psycopg://{place}"\n', "lab.toml")
    assert place not in str(refused.value)
