"""What a record says of the software that an episode ran on, and what is said when the lab's own was edited."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import make_campaign
from support.runs.run_bench import Bench

from labctl import software
from labctl.clock import Anchor
from labctl.core.events import Kind
from labctl.core.record import Episode, Record
from labctl.plain import Json
from labctl.reporting.software_used import differing, together
from labctl.runtime.lab_modules import WHOSE, edited_lines, edited_modules, pins_of_episodes
from labctl.software import code_digest, collect_pins, in_words
from labctl.store.campaign import Campaign

ROOT = Path(__file__).resolve().parents[2]
PINS: software.Pins = {
    "labctl": "0.1.0",
    "git": {"commit": "a" * 40, "dirty": False},
    "code": "c" * 64,
    "python": "3.11.2",
    "packages": {"numpy": "2.4.1", "franky-control": "2.0.0"},
}


def test_what_labctl_requires_is_named_with_its_version_extras_included() -> None:
    packages = collect_pins()["packages"]
    for name in ("numpy", "pyzmq", "sqlmodel", "SQLAlchemy", "pydantic", "franky-control", "rerun-sdk"):
        assert packages[name] == metadata.version(name)
    assert "labctl" not in packages
    if sys.version_info < (3, 13):  # its wheels end there
        assert packages["ur_rtde"] == metadata.version("ur_rtde")


def test_a_package_that_is_not_installed_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software.metadata, "requires", lambda name: ["numpy>=2", 'no-such-thing; extra == "x"'])
    assert {"numpy"} < {*software._required()}
    assert "no-such-thing" not in software._required()


def distribution(path: Path, name: str, version: str, *requires: str) -> None:
    """As pip leaves it."""
    folder = path / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *map("Requires-Dist: {}".format, requires),
    ]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")


def test_what_a_package_with_drivers_requires_in_turn_is_named_its_extras_as_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "lab-arms", "0.3", "arm-sdk[can] >=1", "not-installed-here")
    distribution(tmp_path, "Arm.SDK", "1.4", "arm-bus; extra == 'can'", "arm-plots; extra == 'plots'", "lab-arms")
    distribution(tmp_path, "arm-bus", "7.1")
    distribution(tmp_path, "arm-plots", "2.0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(software, "_of_drivers", lambda: {"lab-arms": "0.3"})
    found = software._beneath({"lab-arms": "0.3"})
    assert {name: text for name, text in found.items() if "arm" in name} == {"arm-sdk": "1.4", "arm-bus": "7.1"}


def test_a_lab_that_has_written_modules_of_its_own_has_a_digest_of_them_and_another_after_a_change(
    tmp_path: Path,
) -> None:
    """Also of those that nothing loads: which a trial uses may depend on its arm."""
    assert software.of_the_lab(None) is None and software.of_the_lab(tmp_path) is None
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "ours" / "arm.py").write_text("x = 1")
    (tmp_path / "campaigns").mkdir()
    one = software.of_the_lab(tmp_path)
    (tmp_path / "campaigns" / "notes.py").write_text("x = 1")
    assert one is not None and software.of_the_lab(tmp_path) == one
    (tmp_path / "ours" / "arm.py").write_text("x = 2")
    two = software.of_the_lab(tmp_path)
    assert two is not None and differing(one, two).startswith("the lab's modules ")


LOADS = """
import json, sys
from importlib import metadata
import aiohttp, matplotlib.figure, sqlmodel, textual.app
from labctl.software import collect_pins
pins = collect_pins()
owners = metadata.packages_distributions()
tops = {module.partition(".")[0] for module in [*sys.modules]}
loaded = {owners[top][0] for top in tops if len({*owners.get(top, ())}) == 1}  # not "backports", which several have
print(json.dumps([sorted(loaded), sorted({**pins["packages"], **pins["beneath"]})]))
"""


def test_every_distribution_that_a_process_has_loaded_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True)
    loaded, named = ({software._plain(name) for name in names} for names in json.loads(done.stdout))
    assert {"matplotlib", "kiwisolver", "textual", "aiohttp", "multidict"} <= loaded
    assert loaded - named <= {"labctl", "pip", "setuptools"}  # pip's and setuptools' own hooks may be there at a start


@pytest.mark.parametrize("name", ["b.py", "kernel.c", "page.html.j2", "card.toml", "arm.urdf", "c.css", "native.so"])
def test_a_changed_byte_or_name_of_any_file_changes_the_digest(name: str, tmp_path: Path) -> None:
    package, file = tmp_path / "labctl", tmp_path / "drivers" / "deep" / name
    package.mkdir()
    file.parent.mkdir(parents=True)
    (package / "a.py").write_text("x = 1\n")
    file.write_text("y = 2\n")
    first = code_digest(package)
    file.write_text("y = 3\n")
    second = code_digest(package)
    file.rename(file.with_name("z" + name))
    assert len({first, second, code_digest(package)}) == 3


def test_bytecode_hidden_files_and_what_lies_outside_do_not_change_the_digest(tmp_path: Path) -> None:
    package = tmp_path / "labctl"
    for folder in ("labctl/__pycache__", "labctl/.ipynb_checkpoints", "drivers", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (package / "a.py").write_text("x = 1\n")
    first = code_digest(package)
    for name in ("__pycache__/a.cpython-311.pyc", ".ipynb_checkpoints/a.py", ".a.py.swp", "../tests/t.py", "../x.toml"):
        (package / name).write_text("another")
    assert code_digest(package) == first


def test_all_that_is_digested_of_a_source_tree_goes_into_a_wheel() -> None:
    """A pattern of setuptools' package-data counts from the folder of its package."""
    listed = {f"{wing}/{name.as_posix()}" for wing in software.FOLDERS for name, _ in software._files(ROOT / wing)}
    assert {"analysis/survival/compiled/pairs.c", "protocols/demo.toml", "ui/rerun/arm_fr3.urdf"} < listed
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = {one.replace(".", "/") for one in built["packages"]}
    folders |= {one.removeprefix("labctl/") for one in folders}
    patterns = ["*.py", *built["package-data"]["*"]]
    for name in sorted(listed):
        above = [folder for folder in Path(name).parents if folder.as_posix() in folders]
        assert above and any(Path(name).relative_to(above[0]).match(one) for one in patterns), name


def test_a_wheel_and_its_source_tree_have_one_digest(tmp_path: Path) -> None:
    tree, wheel = tmp_path / "tree" / "labctl", tmp_path / "wheel" / "labctl"
    for folder in (tree, tree.parent / "analysis", wheel / "analysis"):
        folder.mkdir(parents=True)
    for path in (tree / "a.py", wheel / "a.py"):
        path.write_text("x = 1\n")
    for name in ("b.py", "kernel.c"):
        for folder in (tree.parent / "analysis", wheel / "analysis"):
            (folder / name).write_text("y = 2\n")
    assert code_digest(tree) == code_digest(wheel)


def test_a_driver_that_was_added_and_not_committed_makes_a_checkout_dirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "labctl" / "software.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    own = ["-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], [*own, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    monkeypatch.setattr(software, "__file__", str(module))
    (tmp_path / "notes.txt").write_text("not code")
    assert (software._git() or {}).get("dirty") is False
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "ours.py").write_text("x = 1")
    assert (software._git() or {}).get("dirty") is True


def test_episodes_of_the_same_software_are_one_stretch_and_a_change_is_named() -> None:
    newer: software.Pins = {**PINS, "packages": {"numpy": "2.4.2", "rerun-sdk": "0.41"}}
    found = together([("e-1", PINS), ("e-2", PINS), ("e-3", newer), ("e-4", PINS)])
    assert [(one.first, one.last, one.episodes) for one in found] == [
        ("e-1", "e-2", 2),
        ("e-3", "e-3", 1),
        ("e-4", "e-4", 1),
    ]
    said = "numpy 2.4.1 to 2.4.2, franky-control 2.0.0 to absent, rerun-sdk absent to 0.41"
    assert differing(PINS, newer) == said


def test_what_lies_beneath_is_named_where_both_say_it() -> None:
    """labctl wrote none of it before December 2026."""
    then: software.Pins = {**PINS, "beneath": {"pyserial-asyncio": "1", "attrs": "26.1"}}
    now: software.Pins = {**PINS, "beneath": {"pyserial-asyncio": "2", "attrs": "26.1"}}
    assert differing(then, now) == "pyserial-asyncio 1 to 2"
    assert differing(PINS, {**now, "code": "d" * 64}) == f"code {'c' * 12} to {'d' * 12}"


def test_a_version_is_a_line() -> None:
    assert in_words(PINS) == f"labctl 0.1.0, commit {'a' * 12}, code {'c' * 12}"
    assert in_words({**PINS, "git": {"commit": "b" * 40, "dirty": True}}).startswith(
        f"labctl 0.1.0, commit {'b' * 12} with local changes, code"
    )
    old: software.Pins = {"labctl": "0.1.0", "git": None, "python": "3.11.2", "packages": {}}
    assert in_words(old) == "labctl 0.1.0"


# -- a lab's own modules, which are not sealed: an edit takes effect


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "ours.py").write_text("x = 1")
    return tmp_path


def began(pins: Json) -> Record:
    """A campaign in which an episode began with this software."""
    start: Any = {"pins": pins}
    return Record(episodes={"e-1": Episode("e-1", "t-1", Anchor(0, "", "boot"), start=start)})


def test_modules_edited_since_the_last_episode_are_said_to_take_effect(lab: Path) -> None:
    """A scoring function was edited between two evenings, and the run did not say so."""
    record = began(dict(software.of_the_lab(lab) or {}))
    assert edited_modules(record, str(software.modules_of(lab))) == ""
    (lab / "ours.py").write_text("x = 2")
    said = edited_modules(record, str(software.modules_of(lab)))
    assert said.startswith(f"{WHOSE} since the last episode: trials from now on run them as they are")


def test_before_the_first_episode_and_where_none_were_known_nothing_is_said() -> None:
    assert edited_modules(Record(), "a") == "" and edited_modules(began({}), "a") == ""


def test_the_verb_that_goes_on_with_a_campaign_says_it(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path).folder
    (tmp_path / "ours.py").write_text("x = 1")
    with Campaign.open(folder, writer=True) as campaign:
        assert edited_lines(campaign) == []
        bench = Bench(campaign, pins=pins_of_episodes(tmp_path, print, live=True))
        bench.begin()
        bench.start()
        assert edited_lines(campaign) == []
        (tmp_path / "ours.py").write_text("x = 2")
        assert [line.partition(":")[0] for line in edited_lines(campaign)] == [f"{WHOSE} since the last episode"]


def test_an_episode_of_a_run_in_real_time_has_the_modules_that_its_controller_loads(lab: Path) -> None:
    """It had those that lay there when the run began, whatever its controller, a process of its own, had loaded."""
    lines: list[str] = []
    pins = pins_of_episodes(lab, lines.append, live=True)
    first = pins()
    assert pins() == first and first["modules"] == software.modules_of(lab) and lines == []
    (lab / "ours.py").write_text("x = 2")
    assert pins()["modules"] == software.modules_of(lab) != first["modules"] and len(lines) == 1
    assert pins()["modules"] == software.modules_of(lab) and len(lines) == 1, "it is said once"
    assert lines[0].startswith(f"{WHOSE} while this run goes: controllers run them as they are from here on")


def test_the_modules_of_each_episode_are_looked_at_once_before_its_controller_begins(tmp_path: Path) -> None:
    asked = count()
    with Campaign.open(make_campaign(tmp_path).folder, writer=True) as campaign:
        bench = Bench(campaign, pins=lambda: {"modules": str(next(asked))})
        bench.begin_session()
        before = next(asked)
        bench.stage()
        bench.start()
        (began,) = bench.events(Kind.EPISODE_STARTED)
        assert began.body["pins"] == {"modules": str(before + 1)} and next(asked) == before + 2


def test_in_simulated_time_what_was_loaded_once_is_what_runs(lab: Path) -> None:
    lines: list[str] = []
    pins = pins_of_episodes(lab, lines.append, live=False)
    first = pins()
    (lab / "ours.py").write_text("x = 2")
    assert pins() == first and lines == []


def test_a_lab_without_modules_and_a_file_that_goes_while_it_is_read_end_no_run(
    lab: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = tmp_path_factory.mktemp("none")
    assert pins_of_episodes(none, print, live=True)() == software.collect_pins()
    pins = pins_of_episodes(lab, print, live=True)
    first = pins()

    def gone(_: Path) -> str:
        raise FileNotFoundError("ours.py")

    monkeypatch.setattr("labctl.runtime.lab_modules.modules_of", gone)
    assert pins() == first
