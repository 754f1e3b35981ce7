"""RFC 3161 timestamps of heads: an authority's word that the chain up to a head existed at a time.

The authority's answer for head N lies in the campaign's folder as timestamps/N.tsr, as it came; what it stamps is the
text N:HASH. A record that was made anew has other heads, which were stamped later than its entries say they were
written, or not at all. An OpenTimestamps proof may lie there as N.ots: it is counted, and not checked.

May not: trust a certificate that lab.toml does not name, or ask from a run process: it waits for no network.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from labctl.clock import SECOND, Clock, wall_ns
from labctl.core.events import Event
from labctl.errors import BrokenRecord, InputError, MissingExtra, StateError, Unreachable
from labctl.plain import count
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.chain_heads import head_text, read_heads
from labctl.store.lab_folder import MARK, lab_settings, lab_with
from labctl.store.problem import Problem

FOLDER = "timestamps"
_NAME = re.compile(r"([1-9][0-9]{0,17})\.(tsr|ots)")
LARGEST = 1 << 20  # bytes of an answer
EARLY_NS = 60 * SECOND  # how far two clocks may be apart before a stamp before its entry is said


@dataclass(frozen=True, slots=True)
class Authority:
    """A lab's time-stamping authority. certificates: PEM; every one in it is trusted."""

    address: str
    certificates: bytes
    timeout_s: float


@dataclass(slots=True)
class Dated:
    """What timestamps say of a record. `facts` are one line each."""

    problems: list[Problem] = field(default_factory=list[Problem])
    facts: list[str] = field(default_factory=list[str])


def authority_of(folder: Path) -> Authority | None:
    """The authority of the lab that a campaign folder lies in; None where it names none. Raises InputError."""
    table = lab_settings(folder).timestamps
    lab = lab_with(folder)
    if table is None or lab is None:
        return None
    path = lab / table.certificates
    try:
        return Authority(table.authority, path.read_bytes(), table.timeout_s)
    except OSError as error:
        text = f"[timestamps] certificates: {table.certificates!r} cannot be read ({(error.strerror or '').lower()})"
        raise InputError(f"{text}; name the authority's root certificate, PEM", where=str(lab / MARK)) from None


def kept(folder: Path, kind: str = "tsr") -> dict[int, Path]:
    """The timestamps that lie in a campaign folder, by the head's position."""
    found: dict[int, Path] = {}
    for path in (folder / FOLDER).glob(f"*.{kind}"):
        match = _NAME.fullmatch(path.name)
        if match:
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def keep(folder: Path, seq: int, answer: bytes) -> None:
    """Put an authority's answer for head `seq` beside the heads. Raises StorageError."""
    with file_errors(str(folder / FOLDER)):
        (folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
    replace_file(folder / FOLDER / f"{seq}.tsr", answer)


def stamp(folder: Path, clock: Clock) -> str:
    """Ask for a timestamp of a campaign's newest head, check it and keep it; returns a line.

    Raises InputError where the lab names no authority, Unreachable when none came, BrokenRecord for one that does not
    hold, MissingExtra, StorageError.
    """
    authority = authority_of(folder)
    if authority is None:
        raise InputError("lab.toml names no authority: [timestamps] authority and certificates")
    heads = read_heads(folder)
    if not heads:
        raise StateError(f"{folder.name} has no head to stamp")
    head = heads[-1]
    if head.seq in kept(folder):
        return f"head {head_text(head.seq, head.hash)} has its timestamp"
    answer = _ask(authority, query(head.seq, head.hash), clock)
    try:
        at = stamped_at(answer, head.seq, head.hash, authority)
    except BrokenRecord as error:
        raise BrokenRecord(f"{authority.address} gave a timestamp that is not kept: {error}") from None
    keep(folder, head.seq, answer)
    return f"head {head_text(head.seq, head.hash)} stamped at {at}"


def _ask(authority: Authority, question: bytes, clock: Clock) -> bytes:
    request = urllib.request.Request(  # its address is http or https: `TimestampsTable`
        authority.address, question, {"Content-Type": "application/timestamp-query"}
    )
    until_ns = clock.now_ns() + round(authority.timeout_s * SECOND)
    found = b""
    try:
        with urllib.request.urlopen(request, timeout=authority.timeout_s) as answer:
            while piece := answer.read1(65_536):
                found += piece
                if len(found) > LARGEST:
                    raise StateError(f"no timestamp: {authority.address} answers with more than {LARGEST} bytes")
                if clock.now_ns() > until_ns:
                    raise TimeoutError("timed out")
    except (OSError, ValueError, OverflowError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        raise Unreachable(f"no timestamp: {authority.address}: {error}; later: labctl stamp") from None
    return found


def _library(name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("timestamps", what) from error


def query(seq: int, hash: str) -> bytes:
    """What an authority is asked, DER: a timestamp of N:HASH by SHA-256, with its certificates. Raises MissingExtra."""
    library = _library("rfc3161_client", "a timestamp")
    request = library.TimestampRequestBuilder().data(head_text(seq, hash).encode())
    request = request.hash_algorithm(library.HashAlgorithm.SHA256)
    return bytes(request.build().as_bytes())


def stamped_at(answer: bytes, seq: int, hash: str, authority: Authority) -> str:
    """When an authority says that a head was there, ISO 8601, UTC. Raises BrokenRecord for an answer that does not
    prove it, InputError for certificates that are none, MissingExtra.
    """
    library = _library("rfc3161_client", "checking a timestamp")
    try:
        roots = _library("cryptography.x509", "a timestamp").load_pem_x509_certificates(authority.certificates)
    except ValueError:
        raise InputError("[timestamps] certificates of lab.toml is no PEM file of certificates") from None
    try:
        response = library.decode_timestamp_response(answer)
        library.VerifierBuilder(roots=roots).build().verify_message(response, head_text(seq, hash).encode())
        at = str(response.tst_info.gen_time.isoformat(timespec="seconds"))
    except Exception as error:  # whatever these bytes make of the library, they prove nothing
        raise BrokenRecord(f"it does not prove head {seq}: {error}") from None
    return at


def dated(folder: Path, events: Sequence[Event], trusted: Authority | None = None) -> Dated:
    """Check every timestamp of a campaign against its chain and the certificates that are trusted, else its lab's."""
    found, stamps = Dated(), kept(folder)
    proofs = kept(folder, "ots")
    if proofs:
        which = ", ".join(map(str, proofs))
        found.facts.append(f"OpenTimestamps proofs of heads {which} lie in {FOLDER}/, unchecked")
    authority = trusted or authority_of(folder)
    if authority is None:
        if stamps:
            found.facts.append(
                f"{count(len(stamps), 'timestamp')} in {FOLDER}/, unchecked: lab.toml names no [timestamps]"
            )
        return found
    times: dict[int, str] = {}
    hashes = {event.seq: event.hash for event in events}
    for seq, path in stamps.items():
        where = f"{FOLDER}/{path.name}"
        if seq not in hashes:
            found.problems.append(Problem("bad timestamp", where, f"the journal ends at {max(hashes, default=0)}"))
            continue
        try:
            with file_errors(where):
                answer = path.read_bytes()
            times[seq] = stamped_at(answer, seq, hashes[seq], authority)
        except MissingExtra as error:
            found.facts.append(f"{count(len(stamps), 'timestamp')} in {FOLDER}/, unchecked: {error}")
            return found
        except BrokenRecord as error:
            found.problems.append(Problem("bad timestamp", where, str(error)))
    if not found.problems:
        found.facts.append(_dated_by(times, events, authority))
    return found


def _dated_by(times: Mapping[int, str], events: Sequence[Event], authority: Authority) -> str:
    """What the timestamps bind, and how long after its entries say they were written."""
    if not times:
        return "no head has a timestamp, though lab.toml names an authority"
    last = max(times)
    root = hashlib.sha256(authority.certificates).hexdigest()[:16]
    text = (
        f"{count(len(times), 'timestamp')}, trusted by the certificates {root}…: entries 1 to {last} of {len(events)}"
    )
    text += f" existed at {times[last]}"
    stamped_ns = {seq: wall_ns(at) for seq, at in times.items()}
    lags: dict[int, int] = {}
    for event in events:
        if event.seq <= last:
            first = min(at_ns for seq, at_ns in stamped_ns.items() if seq >= event.seq)
            lags[event.seq] = first - _wall_ns(event)
    late = max(lags, key=lambda seq: lags[seq])
    text += f"; stamped at most {_long(lags[late])} after they say they were written (entry {late})"
    early = min(lags, key=lambda seq: lags[seq])
    if lags[early] < -EARLY_NS:
        text += f"; entry {early} says that it was written {_long(-lags[early])} after it was stamped"
    return text


def _wall_ns(event: Event) -> int:
    try:
        return wall_ns(event.wall)
    except (TypeError, ValueError):
        text = f"entry {event.seq} has no time that could be held against a timestamp: {event.wall!r}"
        raise BrokenRecord(text) from None


def _long(lag_ns: int) -> str:
    seconds = lag_ns / SECOND
    for size, unit, least in ((86_400, "days", 2 * 86_400), (3600, "h", 2 * 3600), (60, "min", 120)):
        if seconds >= least:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
