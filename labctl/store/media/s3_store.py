"""A media store that is a bucket of an S3 server.

May not: hold or print a key (they are found as AWS's own tools find them), set a header that tells files apart, or
delete an object.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Protocol, TypedDict

from labctl.config.media import BUCKET, MediaTable, in_the_clear
from labctl.errors import StorageError, in_words
from labctl.extras import wanted_for
from labctl.store.atomic_files import file_errors
from labctl.store.media.places import PART, Object, Say, gone, nothing, object_name

# What the codes of S3 mean for whoever uploads.
_MEANINGS: Mapping[str, str] = {
    "AccessDenied": "access is refused; look at the rights of these keys",
    "403": "access is refused; look at the keys and their rights",
    "Forbidden": "access is refused; look at the keys and their rights",
    "InvalidAccessKeyId": "it does not know this key; look at the profile, or at AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "the secret of this key was refused",
    "RequestTimeTooSkewed": "its clock and this computer's are too far apart; set this one right",
    "NoSuchBucket": "there is no such bucket",
    "QuotaExceeded": "it is full (a quota); nothing of this part was kept",
    "InsufficientStorage": "it is full; nothing of this part was kept",
    "507": "it is full; nothing of this part was kept",
    "BadDigest": "what arrived is not what was sent; again",
    "SlowDown": "it asks to be asked more slowly; later again",
    "503": "it is too busy, or starting; later again",
    "ServiceUnavailable": "it is too busy, or starting; later again",
    "InvalidRequest": "it refuses this request; a bucket without object lock refuses lock_days",
    "ObjectLockConfigurationNotFoundError": "its bucket has no object lock; take lock_days out, or use one that has",
}
TRIES = 3  # of an upload that others end
Value = str | int | bytes | Mapping[str, Sequence[Mapping[str, str | int]]] | Mapping[str, str]
Given = Mapping[str, Value]


class _Date(Protocol):
    def isoformat(self) -> str: ...


class _Part(TypedDict):
    PartNumber: int
    ETag: str


class _Begun(TypedDict):
    Key: str
    UploadId: str


class _Wrong(TypedDict):
    Code: str


class Answer(TypedDict, total=False):
    """What is read here of what botocore gives."""

    UploadId: str
    Uploads: Sequence[_Begun]
    Parts: Sequence[_Part]
    IsTruncated: bool
    NextPartNumberMarker: int
    ContentLength: int
    ETag: str
    VersionId: str
    ObjectLockRetainUntilDate: _Date
    Error: _Wrong


class _Server(Protocol):
    """What is used here of s3fs, which has no types. retries: its own, around those of botocore."""

    retries: int

    def call_s3(self, verb: str, **given: Value) -> Answer: ...
    def open(self, path: str, mode: str, **given: str | int) -> BinaryIO: ...


class S3Store:
    """One bucket. Whatever is asked is answered in time, or given up."""

    def __init__(self, table: MediaTable) -> None:
        """Raises StorageError when the bucket does not answer or is not there, MissingExtra."""
        with wanted_for("a media store in a bucket"):
            make: Callable[..., _Server] = import_module("s3fs").S3FileSystem

        self.where = table.url
        self._bucket, _, prefix = table.url.removeprefix(BUCKET).rstrip("/").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._lock = table.lock.upper()
        if in_the_clear(table.endpoint):
            how = "give https:// (and [media] certificates for an authority of your own), or a tunnel to 127.0.0.1"
            raise StorageError(f"{self.where}: http:// to another computer sends videos readably; {how}")
        given = {"region_name": table.region} if table.region else {}
        if table.certificates is not None:
            given["verify"] = _trusted(table.certificates)
        self._fs = make(
            endpoint_url=table.endpoint,
            profile=table.profile,
            client_kwargs=given,
            config_kwargs={
                "connect_timeout": min(table.timeout_s, 10.0),
                "read_timeout": table.timeout_s,
                "retries": {"max_attempts": 2},
                # servers of others' do not know the checksums that botocore adds of late; MD5 goes with each part
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
            },
            version_aware=True,
            skip_instance_cache=True,
            use_listings_cache=False,
        )
        self._fs.retries = 1
        if self._ask("head_bucket", missing=True) is None:
            raise StorageError(f"{self.where}: there is no such bucket; make it, with versions and object lock")

    def _name(self, sha256: str) -> str:
        return self._prefix + object_name(sha256)

    def _ask(self, verb: str, given: Given | None = None, *, missing: bool = False) -> Answer | None:
        """Raises StorageError; None where it says that there is none, if that may be."""
        try:
            with self._errors():
                return self._fs.call_s3(verb, Bucket=self._bucket, **(given or {}))
        except FileNotFoundError:
            if missing:
                return None
            raise StorageError(f"{self.where}: it is not there any more; later again") from None

    @contextmanager
    def _errors(self) -> Generator[None, None, None]:
        said = import_module("botocore.exceptions")
        refused: type[Exception] = said.ClientError
        keyless: tuple[type[Exception], ...] = (said.NoCredentialsError, said.PartialCredentialsError)
        keyless = (*keyless, said.ProfileNotFound)
        silent: tuple[type[Exception], ...] = (said.BotoCoreError, import_module("aiohttp").ClientError, TimeoutError)
        try:
            yield
        except FileNotFoundError:
            raise
        except keyless:
            how = "name a profile of ~/.aws/credentials in [media], or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            raise StorageError(f"{self.where}: no keys are found; {how}") from None
        except (OSError, refused, said.SSLError) as error:
            if untrusted := _untrusted(error):
                raise StorageError(f"{self.where}: {untrusted}") from None
            code = _code(error)
            if not code:
                raise StorageError(f"{self.where}: {_AWAY}") from None
            raise StorageError(f"{self.where}: {_MEANINGS.get(code, 'it refuses')} ({code})") from None
        except silent as error:
            raise StorageError(f"{self.where}: {_AWAY} ({type(error).__name__})") from None

    def find(self, sha256: str, version: str | None = None) -> Object | None:
        given = {"VersionId": version} if version else {}
        try:
            found = self._ask("head_object", {"Key": self._name(sha256), **given}, missing=True)
        except StorageError as error:  # a version that was deleted, or never was
            if version and any(
                f"({code})" in str(error) for code in ("400", "405", "NoSuchVersion", "InvalidArgument")
            ):
                return None
            raise
        return None if found is None else _object(found)

    def put(self, path: Path, sha256: str, until: str | None, say: Say = nothing) -> Object:
        name = self._name(sha256)
        locked = {} if until is None else {"ObjectLockMode": self._lock, "ObjectLockRetainUntilDate": until}
        with file_errors(str(path)):
            size = path.stat().st_size
        if size <= PART:
            with file_errors(str(path)):
                data = path.read_bytes()
            self._ask("put_object", {"Key": name, "Body": data, "ContentMD5": _md5(data), **locked})
            say(size)
        else:
            self._in_parts(path, name, size, locked, say)
        found = self.find(sha256)
        if found is None or found.bytes != size:
            raise StorageError(f"{self.where}: it took the file and does not have it; later again")
        return found

    def lock(self, sha256: str, version: str | None, until: str) -> None:
        given = {"VersionId": version} if version else {}
        kept = {"Mode": self._lock, "RetainUntilDate": until}
        self._ask("put_object_retention", {"Key": self._name(sha256), **given, "Retention": kept})

    def _in_parts(self, path: Path, name: str, size: int, locked: Given, say: Say) -> None:
        """Send what is missing of an upload. One that somebody else, uploading the same file, has ended meanwhile is
        gone: then the object is there.
        """
        for _ in range(TRIES):
            upload, there = self._begun(name)
            if not upload:
                made = self._ask("create_multipart_upload", {"Key": name, **locked})
                assert made is not None
                upload = made.get("UploadId", "")
            if self._sent(path, name, upload, there, size, say):
                return
            kept = self._ask("head_object", {"Key": name}, missing=True)
            if kept is not None and _object(kept).bytes == size:
                return
        raise StorageError(f"{self.where}: an upload was ended there before it was whole, {TRIES} times; later again")

    def _sent(self, path: Path, name: str, upload: str, there: Mapping[int, str], size: int, say: Say) -> bool:
        """Whether an upload could be ended; False where there is none of this number any more."""
        parts: list[Mapping[str, str | int]] = []
        with file_errors(str(path)), path.open("rb") as file:
            for number in range(1, -(-size // PART) + 1):
                data = file.read(PART)
                tag = hashlib.md5(data, usedforsecurity=False).hexdigest()
                if there.get(number) != tag:
                    given = {"Key": name, "UploadId": upload, "PartNumber": number}
                    if (
                        self._ask("upload_part", {**given, "Body": data, "ContentMD5": _md5(data)}, missing=True)
                        is None
                    ):
                        return False
                parts.append({"PartNumber": number, "ETag": f'"{tag}"'})
                say(min(number * PART, size))
        given = {"Key": name, "UploadId": upload, "MultipartUpload": {"Parts": parts}}
        return self._ask("complete_multipart_upload", given, missing=True) is not None

    def _begun(self, name: str) -> tuple[str, dict[int, str]]:
        """The upload of this object that got furthest before it was broken off, and the MD5 of its parts."""
        listed = self._ask("list_multipart_uploads", {"Prefix": name}, missing=True) or {}
        best: tuple[str, dict[int, str]] = ("", {})
        for begun in listed.get("Uploads", ()):
            if begun["Key"] != name:
                continue
            parts = self._parts(name, str(begun["UploadId"]))
            if parts is not None and (not best[0] or len(parts) > len(best[1])):
                best = (str(begun["UploadId"]), parts)
        return best

    def _parts(self, name: str, upload: str) -> dict[int, str] | None:
        found: dict[int, str] = {}
        marker = 0
        while True:
            given = {"Key": name, "UploadId": upload, "PartNumberMarker": marker}
            page = self._ask("list_parts", given, missing=True)
            if page is None:
                return None
            listed: Sequence[_Part] = page.get("Parts", ())
            found |= {int(part["PartNumber"]): str(part["ETag"]).strip('"') for part in listed}
            if not page.get("IsTruncated"):
                return found
            marker = page.get("NextPartNumberMarker", 0)

    def read(self, sha256: str, version: str | None = None) -> Iterator[bytes]:
        kept = self.find(sha256, version)
        if kept is None:
            raise gone(self.where, sha256, version)
        path = f"{self._bucket}/{self._name(sha256)}"
        try:
            with self._errors():
                given = {"version_id": kept.version} if kept.version else {}
                file = self._fs.open(path, "rb", block_size=PART, cache_type="readahead", **given)
                with file:
                    while block := file.read(PART):
                        yield block
        except FileNotFoundError:
            raise gone(self.where, sha256, version) from None

    def checksum_of(self, path: Path) -> str:
        """The ETag that S3 gives an object of one part, or of parts of PART bytes, without a key of the server's."""
        with file_errors(str(path)), path.open("rb") as file:
            parts = [hashlib.md5(data, usedforsecurity=False) for data in iter(lambda: file.read(PART), b"")]
        if len(parts) < 2:
            return parts[0].hexdigest() if parts else hashlib.md5(b"", usedforsecurity=False).hexdigest()
        whole = hashlib.md5(b"".join(part.digest() for part in parts), usedforsecurity=False)
        return f"{whole.hexdigest()}-{len(parts)}"

    def close(self) -> None: ...


_AWAY = "the server does not answer; what was recorded is safe in the campaign's folder"


def _trusted(name: str) -> str:
    """A file of certificates, once it can be read as one. Raises StorageError."""
    try:
        ssl.create_default_context(cafile=name)
    except OSError as error:
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else (error.strerror or "").lower()
        text = f"[media] certificates: {name} cannot be read ({why}); name the authority's certificate, PEM"
        raise StorageError(text) from None
    return name


def _untrusted(error: BaseException) -> str:
    """Why a server's certificate was refused, in words; "" for an error of another kind."""
    seen, at, other = set[int](), [error], ""
    while at:
        one = at.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if why := str(getattr(one, "verify_message", "")).rstrip(".").lower():
            how = "if it is an authority of your own, name its certificate in [media] certificates"
            return f"its certificate is refused ({why}); nothing was sent; {how}"
        if isinstance(one, ssl.SSLError):
            other = f"no encrypted connection was agreed on ({in_words(one)}); nothing was sent"
        inner = (one.__cause__, one.__context__, getattr(one, "os_error", None), *one.args)
        at += [each for each in inner if isinstance(each, BaseException)]
        at += [each for each in getattr(one, "kwargs", {}).values() if isinstance(each, BaseException)]
    return other


def _object(found: Answer) -> Object:
    version = found.get("VersionId")
    tag = found.get("ETag", "").strip('"') or None
    until = found.get("ObjectLockRetainUntilDate")
    known = None if until is None else until.isoformat()
    return Object(found.get("ContentLength", 0), None if version in (None, "null") else str(version), tag, known)


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _code(error: BaseException) -> str:
    """The server's own code, of an error of botocore or of what s3fs made of it; "" without one."""
    at: BaseException | None = error
    while at is not None:
        response: Answer | None = getattr(at, "response", None)
        if isinstance(response, dict) and "Error" in response:
            return str(response["Error"]["Code"])
        at = at.__cause__ or at.__context__
    return ""
