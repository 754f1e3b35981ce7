"""What another thread does between two steps of this one, done in this one: a race without its luck.

May not: start a thread, or wait.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def after_the_first_read(thing: Any, name: str, act: Callable[[], object]) -> Iterator[None]:
    """Once an attribute of `thing` has been read, and before what was read is used, `act` is done."""
    own = type(thing)

    class Between(own):
        def __getattribute__(self, key: str) -> Any:
            found = super().__getattribute__(key)
            if key == name:
                object.__setattr__(self, "__class__", own)
                act()
            return found

    with _as(thing, Between):
        yield


@contextlib.contextmanager
def after_the_first_write(thing: Any, name: str, act: Callable[[], object]) -> Iterator[None]:
    """Once an attribute of `thing` has been written `act` is done."""
    own = type(thing)

    class Between(own):
        def __setattr__(self, key: str, value: Any) -> None:
            super().__setattr__(key, value)
            if key == name:
                object.__setattr__(self, "__class__", own)
                act()

    with _as(thing, Between):
        yield


@contextlib.contextmanager
def _as(thing: Any, made: type) -> Iterator[None]:
    own = type(thing)
    thing.__class__ = made
    try:
        yield
        assert type(thing) is own, "what the test waits for did not happen"
    finally:
        thing.__class__ = own
