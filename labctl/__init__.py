"""labctl: blinded, paired robot trials, recorded and reported."""

from __future__ import annotations


def __getattr__(name: str) -> str:
    """`labctl.__version__`, found out when it is first asked for: a checkout asks git."""
    if name == "__version__":
        from labctl.version import version

        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
