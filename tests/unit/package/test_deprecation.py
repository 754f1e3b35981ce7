"""A name that goes warns for two releases, and beyond them the build fails."""

from __future__ import annotations

import importlib
import re

import pytest

from labctl import deprecation
from labctl.deprecation import GOING, Going, gone_in, overdue, renamed, warn_deprecated
from labctl.version import version

NAMES = {"labctl.api.old": Going("0.3", "new"), "labctl.words": Going("1.9", "other words")}


def test_no_name_is_kept_past_its_release() -> None:
    assert overdue(version()) == [], "remove these, and their lines in labctl/deprecation.py"


def test_every_name_that_is_listed_is_still_there() -> None:
    for name, going in GOING.items():
        module, _, attribute = name.rpartition(".")
        with pytest.warns(FutureWarning, match=re.escape(f"{name} goes in labctl {gone_in(going)}")):
            getattr(importlib.import_module(module), attribute)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names go."""
    monkeypatch.setattr(deprecation, "GOING", NAMES)


@pytest.mark.parametrize(
    ("at", "late"),
    [
        ("0.3.0", []),
        ("0.4.7", []),
        ("0.5.0.dev3+g1", ["labctl.api.old"]),
        ("1.10.0", ["labctl.api.old"]),
        ("1.11.0", ["labctl.api.old", "labctl.words"]),
    ],
)
def test_it_works_in_two_releases_and_is_overdue_in_the_third(listed: None, at: str, late: list[str]) -> None:
    assert overdue(at) == late


def module_with_a_renamed_name(name: str) -> object:
    """As a module's own `__getattr__`."""
    return renamed("labctl.api", name, {"new": 7})


def test_a_renamed_name_gives_the_new_one_s_value_and_says_when_it_goes(listed: None) -> None:
    with pytest.warns(FutureWarning, match=r"^labctl\.api\.old goes in labctl 0\.5; use new$") as seen:
        assert module_with_a_renamed_name("old") == 7
    assert seen[0].filename == __file__
    with pytest.raises(AttributeError, match=r"module 'labctl\.api' has no attribute 'unheard_of'"):
        renamed("labctl.api", "unheard_of", {"new": 7})


def test_what_is_not_listed_cannot_warn(listed: None) -> None:
    with pytest.raises(KeyError):
        warn_deprecated("labctl.api.other")
