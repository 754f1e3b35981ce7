"""The compiled kernel is made once, whole, for this machine, and only where nobody else could have put it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import pytest

from labctl import user_cache
from labctl.analysis.survival import kernel_build


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_build.library.cache_clear()
    kernel_build._temporary.cache_clear()
    yield
    kernel_build.library.cache_clear()


needs_a_compiler = pytest.mark.skipif(kernel_build.compiler_here() is None, reason="no C compiler here")


@needs_a_compiler
def test_a_library_is_made_once_and_then_loaded(tmp_path, monkeypatch):
    kernel_build.library("uint8_t")
    (made,) = (tmp_path / "labctl").iterdir()
    kernel_build.library.cache_clear()
    monkeypatch.setattr(kernel_build, "_make", lambda *of: pytest.fail("it was made again"))
    kernel_build.library("uint8_t")
    assert list((tmp_path / "labctl").iterdir()) == [made]


@needs_a_compiler
@pytest.mark.parametrize("kept", [b"", b"\x7fELF, and no more"])
def test_a_library_that_was_cut_off_is_made_once_more(tmp_path, kept):
    """It stayed, and the plain kernel ran from then on, without a word."""
    name = f"kernel-{kernel_build._made_from(kernel_build.compiler_here(), 'uint8_t')}-uint8_t"
    made = kernel_build.cache_folder() / (name + sysconfig.get_config_var("SHLIB_SUFFIX"))
    made.write_bytes(kept)
    kernel_build.library("uint8_t")
    assert list((tmp_path / "labctl").iterdir()) == [made] and made.stat().st_size > 10_000


@needs_a_compiler
def test_another_processor_or_other_sources_make_another_library(monkeypatch):
    compiler = kernel_build.compiler_here()
    name = kernel_build._made_from(compiler, "uint8_t")
    with monkeypatch.context() as other:
        other.setattr(kernel_build, "_processor", lambda: "another")
        assert kernel_build._made_from(compiler, "uint8_t") != name
    with monkeypatch.context() as other:
        other.setattr(kernel_build, "_sources", list)
        assert kernel_build._made_from(compiler, "uint8_t") != name


def test_a_compiler_that_fails_is_no_kernel_and_leaves_nothing(tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho it cannot >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(ImportError, match="failed: it cannot"):
        kernel_build.library("uint8_t")
    assert not any((tmp_path / "labctl").iterdir())


def test_a_folder_that_others_can_write_to_holds_no_library(tmp_path):
    shared = tmp_path / "labctl"
    shared.mkdir()
    shared.chmod(0o777)
    assert kernel_build.cache_folder() != shared
    shared.chmod(0o700)
    assert kernel_build.cache_folder() == shared


@pytest.mark.parametrize("names", [(), ("media",), ("media", "more")])
def test_whatever_makes_the_cache_folder_first_leaves_it_fit_for_libraries(tmp_path, names):
    """With umask 002 the cache of videos, or a practice, let the group write to it: each process made a library."""
    before = os.umask(0o002)
    try:
        made = user_cache.made_in_cache(*names)
    finally:
        os.umask(before)
    assert made == tmp_path.joinpath("labctl", *names)
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in (made, tmp_path / "labctl"))
    assert kernel_build.cache_folder() == tmp_path / "labctl"


def test_where_no_cache_folder_is_to_be_had_the_library_goes_with_the_process(tmp_path):
    (tmp_path / "file").touch()
    told = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    code = "from labctl.analysis.survival.kernel_build import cache_folder; print(cache_folder())"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=told).stdout
    assert out.startswith(f"{tmp_path}/labctl-kernel-")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_where_no_compiler_knows_the_processor_the_library_is_made_without_it(tmp_path, monkeypatch):
    calls = tmp_path / "calls"
    picky = tmp_path / "picky"
    picky.write_text(
        f'#!/bin/sh\necho "$*" >> {calls}\ncase "$*" in *-march=native*) exit 1;; esac\n'
        'while [ "$1" != "-o" ]; do shift; done\necho no library > "$2"\n'
    )
    picky.chmod(0o755)
    monkeypatch.setenv("CC", str(picky))
    with pytest.raises(ImportError, match="cannot be made or loaded"):
        kernel_build.library("uint8_t")
    first, second = calls.read_text().splitlines()
    assert "-march=native" in first and "-march=native" not in second
