"""A media store behind TLS: an authority of the lab's own is trusted where lab.toml names it, and nobody else is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from support.media.buckets import Bucket, a_file
from support.media.ceph import Ceph, needs_s3
from support.media.tls import Authority, in_front

from labctl.config.media import MediaTable
from labctl.errors import StorageError
from labctl.store.lab_folder import settings_of
from labctl.store.media.opening import open_store
from labctl.store.media.places import PART, digest_in

pytestmark = pytest.mark.skipif(find_spec("s3fs") is None, reason="labctl[media] is not installed")


def table(port: int, certificates: Path | None) -> MediaTable:
    """The [media] of a bucket behind this port."""
    where = f"https://127.0.0.1:{port}"
    trusted = None if certificates is None else str(certificates)
    return MediaTable(url="s3://videos/lab", endpoint=where, certificates=trusted, region="default", timeout_s=20.0)


def test_a_certificate_of_an_authority_that_lab_toml_names_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Authority(tmp_path / "ours")
    with in_front(ours.signs(), None) as port:
        open_store(table(port, ours.root)).close()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(ours.root))
        open_store(table(port, None)).close()


def test_a_certificate_that_is_not_to_be_trusted_is_refused_in_a_line_with_the_reason(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    cases = [
        (ours.signs(), None, "unable to get local issuer certificate"),
        (ours.signs(), other.root, "unable to get local issuer certificate"),
        (ours.signs("127.0.0.2"), ours.root, "ip address mismatch"),
        (ours.signs(days=10), ours.root, "certificate has expired"),
    ]
    for certificate, trusted, why in cases:
        with in_front(certificate, None) as port, pytest.raises(StorageError) as refused:
            open_store(table(port, trusted))
        text = str(refused.value)
        assert text.startswith("s3://videos/lab: its certificate is refused (") and why in text, text
        assert "nothing was sent" in text and "[media] certificates" in text and "\n" not in text


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no certificate")
    for name, why in (("none.pem", "it holds no certificate"), ("gone.pem", "no such file")):
        with pytest.raises(StorageError, match=rf"\[media\] certificates: .*{name} cannot be read \({why}"):
            open_store(table(9, tmp_path / name))


@pytest.mark.parametrize("endpoint", ["http://10.20.30.40:9000", "http://s3.example", "http://[2001:db8::1]:80"])
def test_plain_http_to_another_computer_is_not_opened_and_the_lab_is_read_all_the_same(
    endpoint: str, tmp_path: Path
) -> None:
    (tmp_path / "lab.toml").write_text(f'[media]\nurl = "s3://videos/lab"\nendpoint = "{endpoint}"\n')
    media = settings_of(tmp_path).media
    assert media is not None
    with pytest.raises(StorageError, match="sends videos readably; give https://") as refused:
        open_store(media)
    assert endpoint not in str(refused.value)


def test_certificates_lie_beside_lab_toml(tmp_path: Path) -> None:
    text = '[media]\nurl = "s3://videos/lab"\nendpoint = "https://s3.example"\ncertificates = "our-ca.pem"\n'
    (tmp_path / "lab.toml").write_text(text)
    media = settings_of(tmp_path).media
    assert media is not None and media.certificates == str(tmp_path.resolve() / "our-ca.pem")


@pytest.mark.thorough
@pytest.mark.limit(300)
@pytest.mark.parametrize("parts", [1, 3])
@needs_s3[0]
def test_videos_go_to_a_real_server_through_tls_and_come_back(parts: int, ceph: Ceph, tmp_path: Path) -> None:
    bucket, ours = Bucket(ceph, versions=True), Authority(tmp_path / "ours")
    path, sha256 = a_file(tmp_path / "video", parts * PART - 5)
    with in_front(ours.signs(), ceph.port) as port:
        asked = {"endpoint": f"https://127.0.0.1:{port}", "certificates": str(ours.root)}
        store = open_store(bucket.table(**asked))
        kept = store.put(path, sha256, None)
        assert kept.version and digest_in(store, sha256, kept.version) == sha256
        store.close()
    assert bucket.keys() and not bucket.unfinished()
