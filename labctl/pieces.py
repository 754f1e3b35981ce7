"""Heavy work in pieces, by further processes of this command or by the workers of a Dask cluster: the same comes out.

A piece is a function of a module and what it is given; it draws nothing from outside (a seed is given), so neither the
place nor the order changes a byte. May not: know what the work is, keep a result (whoever asks for it does), or serve
a run.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Sized
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, TypeVarTuple

from labctl.errors import InputError, Unreachable, WorkersLost
from labctl.extras import wanted_for
from labctl.plain import Json, count
from labctl.processes import cores, processes

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

Given = TypeVarTuple("Given")
Result = TypeVar("Result")
TRIES = 3
"""How often processes may be lost without a piece being finished in between."""
ANSWER_S = 10.0
"""Within which a scheduler and its workers answer before anything is begun."""
LOOK_S, EMPTY_S = 2.0, 20.0
"""How often it is seen whether any worker is left while a piece is waited for, and for how long none may be there."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where pieces are done: in so many processes here (None: as many as it is worth), or on a cluster, by its
    scheduler's address.
    """

    workers: int | None = None
    cluster: str | None = None

    def processes(self, worth: int) -> int:
        """How many here, of a work that is worth so many."""
        return worth if self.workers is None else self.workers


HERE = Place()


def each(
    place: Place, work: Callable[[*Given], Result], given: Sequence[tuple[*Given]], worth: int, folder: Path
) -> Iterator[Result]:
    """`work(*one)` of every one, in their order, from wherever they are done. worth: how many processes here; folder:
    what they write to and everybody has to see.

    A process or worker that is killed is replaced, and what it had not finished is done again. Raises what a piece
    raised (no other is begun then), WorkersLost where processes or the scheduler are gone for good, Unreachable where
    no cluster answers or it is no place for this work, MissingExtra.
    """
    if place.cluster is not None:
        with cluster(place.cluster, folder) as client:
            yield from _there(client, place.cluster, work, given)
        return
    number = min(place.processes(worth), len(given))
    if number < 2:
        for one in given:
            yield work(*one)
        return
    yield from _here(work, given, number)


def _here(work: Callable[[*Given], Result], given: Sequence[tuple[*Given]], number: int) -> Iterator[Result]:
    found: dict[int, Result] = {}
    at, lost = 0, 0
    while at < len(given):
        had = len(found)
        coming: dict[int, Future[Result]] = {}
        try:
            with processes(min(number, len(given) - at)) as pool:
                for k in range(at, len(given)):
                    if k not in found:
                        coming[k] = pool.submit(work, *given[k])
                while at < len(given):
                    result = found[at] if at in found else coming[at].result()
                    found[at] = result
                    at += 1
                    yield result
        except BrokenExecutor as error:
            done = {k: one for k, one in coming.items() if one.done() and not one.cancelled() and not one.exception()}
            found |= {k: one.result() for k, one in done.items()}
            lost = lost + 1 if len(found) == had else 0
            if lost == TRIES:
                raise WorkersLost(
                    f"{TRIES} times a process of this command was killed before it had finished a piece (too little "
                    "memory?); what is finished is kept: the same command again, with --workers 1"
                ) from error


def _there(
    client: Client, address: str, work: Callable[[*Given], Result], given: Sequence[tuple[*Given]]
) -> Iterator[Result]:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    coming = [client.submit(work, *one, pure=False) for one in given]
    done = 0
    try:
        for future in coming:
            empty = 0
            while not _finished(future):
                empty = 0 if client.scheduler_info(n_workers=-1)["workers"] else empty + 1
                if empty * LOOK_S >= EMPTY_S:
                    raise WorkersLost(f"{address}: no worker is left; {_kept(done, given)}")
            yield future.result()
            done += 1
            future.release()
    except KilledWorker as error:
        raise WorkersLost(
            f"{address}: a worker was killed each time it came to a piece (too little memory?); {_kept(done, given)}"
        ) from error
    except (FutureCancelledError, OSError) as error:
        raise WorkersLost(f"{address}: the scheduler went away; {_kept(done, given)}") from error
    finally:
        if client.status == "running":
            client.cancel(coming[done:], force=True)


def _finished(future: DaskFuture) -> bool:
    """Whether a piece is done or has failed, after a while."""
    from distributed import TimeoutError as NotYet

    try:
        future.exception(timeout=LOOK_S)
    except NotYet:
        return False
    return True


def _kept(done: int, given: Sized) -> str:
    return f"{done} of {count(len(given), 'piece')} came back, and what is finished is kept: the same command again"


@contextmanager
def cluster(address: str, folder: Path) -> Generator[Client, None, None]:
    """A client of a Dask cluster that is a place for labctl's work: its workers have this version of labctl and of what
    it writes with, one thread each, and see the folder.

    Raises Unreachable naming what is otherwise, InputError for an address that is none, MissingExtra.
    """
    with wanted_for("--cluster"):
        from distributed import Client
    _quiet()
    try:
        client = Client(address, timeout=ANSWER_S, set_as_default=False, name="labctl")
    except (OSError, TimeoutError) as error:
        raise Unreachable(
            f"--cluster {address}: no Dask scheduler answers there; start one (dask scheduler), and workers beside the "
            "data (dask worker ADDRESS --nthreads 1), or leave --cluster out"
        ) from error
    except ValueError as error:
        raise InputError(
            f"--cluster {address} is no address of a Dask scheduler, such as tcp://10.0.0.5:8786"
        ) from error
    try:
        _look_at(client, address, folder)
        yield client
    finally:
        # A busy machine, or a scheduler that is gone: nothing is left to be said to it.
        with suppress(TimeoutError):
            client.close(timeout=1)


Seen = tuple[str, dict[str, str], str]


class _Asked(Protocol):
    """A client, whose own annotations say that it answers later."""

    def run(self, function: Callable[[str], Seen], *args: str, on_error: Literal["return"]) -> Any: ...


def _seen_by(client: _Asked, token: str) -> Mapping[str, BaseException | Seen]:
    return client.run(looks_like, token, on_error="return")


def _look_at(client: Client, address: str, folder: Path) -> None:
    """Raises Unreachable for a cluster that would not give the same bytes."""
    workers: Mapping[str, Mapping[str, Json]] = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise Unreachable(f"--cluster {address}: no worker is there; start some: dask worker {address} --nthreads 1")
    many = [name for name, one in workers.items() if one["nthreads"] != 1]
    if many:
        raise Unreachable(
            f"--cluster {address}: worker {many[0]} has {workers[many[0]]['nthreads']} threads, and a piece needs a "
            "process of its own; start it with --nthreads 1 (and --nworkers N)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    token, sign = folder / f".seen-{secrets.token_hex(8)}", secrets.token_hex(16)
    token.write_text(sign, "utf-8")
    try:
        answers = _seen_by(client, str(token))
    finally:
        token.unlink(missing_ok=True)
    mine = looks_like("")
    for name, answer in answers.items():
        if isinstance(answer, BaseException):
            raise Unreachable(f"--cluster {address}: worker {name} cannot run labctl: {answer}; install it there")
        host, versions, seen = answer
        other = next((what for what in sorted({*mine[1], *versions}) if mine[1].get(what) != versions.get(what)), None)
        if other is not None:
            there, here = versions.get(other), mine[1].get(other)
            raise Unreachable(
                f"--cluster {address}: worker {name} on {host} has {other} {there}, here it is {here}; other versions "
                "may write other bytes: install the same there"
            )
        if seen != sign:
            raise Unreachable(
                f"--cluster {address}: worker {name} on {host} does not see {folder}; lab and output have to lie where "
                "every worker finds them under the same path (a shared file system)"
            )


def looks_like(token: str) -> Seen:
    """What a worker says of itself: host, versions of what decides about bytes, and what it reads in a file."""
    from labctl.software import collect_pins

    pins = collect_pins()
    try:
        seen = Path(token).read_text("utf-8") if token else ""
    except OSError:
        seen = ""
    versions = {name: version for name, version in pins["packages"].items() if name in WRITES}
    return socket.gethostname(), {**versions, "code": pins.get("code", ""), "python": pins["python"]}, seen


WRITES = frozenset(
    {"av", "matplotlib", "mcap", "numpy", "orjson", "pillow", "pyarrow", "rerun-sdk", "rosbags", "scipy"}
)
"""What the bytes of a result depend on beside labctl's own code."""


def _quiet() -> None:
    """What goes wrong with a cluster is said in one line, not in its libraries' logs."""
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


__all__ = ["HERE", "Place", "cluster", "cores", "each"]
