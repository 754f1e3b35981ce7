"""Which extra of labctl brings a module that is not installed, so that its absence is one line with the remedy.

May not: import any of these modules. tests/unit/package/test_dependencies.py holds the table against pyproject.toml.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from labctl.errors import MissingExtra

BROUGHT_BY = {
    "matplotlib": "report",
    **dict.fromkeys(("PIL", "av", "textual"), "lab"),
    "franky": "franka",
    **dict.fromkeys(("dashboard_client", "rtde_control", "rtde_receive"), "ur"),
    "pymodbus": "robotiq",
    "serial": "sensors",
    **dict.fromkeys(("libusb_package", "pyrealsense2"), "realsense"),
    "cv2": "cameras",
    **dict.fromkeys(("cyclonedds", "rosbags"), "ros2"),
    "skimage": "scene",
    "rerun": "rerun",
    "pyarrow": "parquet",
    **dict.fromkeys(("mcap", "orjson"), "mcap"),
    "openpyxl": "xlsx",
    **dict.fromkeys(("msgpack", "websockets"), "policy"),
    **dict.fromkeys(("dynamixel_sdk", "hid", "pygame"), "teleop"),
    "rfc3161_client": "timestamps",
    **dict.fromkeys(("aiohttp", "cryptography", "textual_serve"), "web"),
    "psycopg": "postgres",
    **dict.fromkeys(("botocore", "fsspec", "s3fs"), "media"),
    "distributed": "cluster",
}
"""A module that labctl imports (its first part) -> the extra that brings it."""


def extra_that_brings(module: str | None) -> str | None:
    """The extra for a module that an import did not find ("av.error": "lab"); None for one that is not labctl's."""
    return BROUGHT_BY.get((module or "").partition(".")[0])


def missing_extra(error: BaseException, what: str) -> MissingExtra | None:
    """What to say of an import in labctl's own code that found nothing; None for any other error, and for what
    somebody else's module lacks. what: what it was wanted for, the beginning of a sentence.
    """
    if not isinstance(error, ModuleNotFoundError) or not _asked_by_labctl(error.__traceback__):
        return None
    extra = extra_that_brings(error.name)
    return MissingExtra(extra, f"{what} (module {error.name!r} is missing)") if extra else None


def require(extra: str, what: str) -> None:
    """Raises MissingExtra unless each module of an extra is there, before anything is begun. what: as in the error."""
    for module in (module for module, brought in BROUGHT_BY.items() if brought == extra):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(extra, f"{what} (module {module!r} is missing)")


@contextmanager
def wanted_for(what: str) -> Iterator[None]:
    """Raises MissingExtra for a module that an import inside did not find and an extra brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_extra(error, what)
        if missing is None:
            raise
        raise missing from error


def _asked_by_labctl(step: TracebackType | None) -> bool:
    """Whether the import that failed stands in labctl's code: the last step of it that is not Python's own import."""
    by = ""
    while step is not None:
        name = str(step.tb_frame.f_globals.get("__name__", ""))
        by = by if name.startswith("importlib") else name
        step = step.tb_next
    return by.partition(".")[0] == "labctl"
