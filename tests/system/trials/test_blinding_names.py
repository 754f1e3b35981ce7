"""Blinding: nothing outside the seal names an arm, tells how it does, or shows it in a process."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.machine.patience import Patience
from support.runs.blind_surfaces import ENTROPY, see_all
from support.runs.campaigns import HUMAN, NEVER_HELD, events_of, make_campaign, policy, start_run
from support.runs.live_campaign import end_of

from labctl.clock import SECOND, MonotonicClock
from labctl.core.events import Kind, canonical
from labctl.errors import StateError
from labctl.runtime.campaign_run import run_campaign

CLOCK = MonotonicClock()
ZEBRAS = [
    policy("zebra-policy", endpoint="sim://zebra-endpoint:6161/v7", skill="swift", latency_s=0.0731862),
    policy("quagga-policy", endpoint="sim://quagga-endpoint:6262/v9", skill="swift", load_s=0.0917743),
]
DYING = {**policy("okapi-policy", words="no okapi here"), "controller": "support.policies.dying_policy:build"}
# The two times have more digits than anything that a page rounds, or a drawing's place on a real run's page is one now
# and then; rounded, they tell an arm with their unit alone.
WORDS = (
    "zebra",
    "quagga",
    "okapi",
    "0.073186",
    "0.091774",
    "73.186",
    "91.774",
    "73.2 ms",
    "91.8 ms",
    "swift",
    "sim_policy",
)


def telling(arms: list[dict[str, Any]]) -> set[str]:
    """What would name an arm: distinctive words, and digests of name, endpoint and options that anyone could make."""
    plain = [
        value
        for arm in arms
        for value in (arm["name"], arm["options"], *(v for v in arm["options"].values() if isinstance(v, str)))
    ]
    forms = [
        form for value in plain for form in (canonical(value), *([value.encode()] if isinstance(value, str) else []))
    ]
    digests = [getattr(hashlib, how)(form).hexdigest() for form in forms for how in ("sha256", "sha1", "md5")]
    return {*WORDS, *digests}


def found_in(seen: dict[str, str], words: Iterable[str]) -> list[tuple[str, str]]:
    return [(surface, word) for surface, text in seen.items() for word in words if word in text.lower()]


def test_nothing_outside_the_seal_names_an_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names, endpoints, options, digests of them, the dying policy's last words; refusals of report and unblind too."""
    lab, arms = tmp_path / "lab", [*ZEBRAS, DYING]
    lab.mkdir()
    folder = make_campaign(lab, arms, entropy=ENTROPY, budget=12.0, max_voids=1, cell=NEVER_HELD).folder
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    seen = see_all(lab, folder, said, capsys)
    assert found_in(seen, telling(arms)) == []
    sealed = "".join(path.read_text("latin-1") for path in (folder / "seal").iterdir())
    assert "no okapi here" in sealed, "why it died is kept, in the seal"
    assert seen["report trial-run --out " + str(lab / "report")].startswith("1\n"), (
        "a report is refused before unblinding"
    )
    assert seen["unblind trial-run"].startswith("1\n") and seen["freeze trial-run"].startswith("1\n")


def test_no_score_runs_along_while_blinded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """status, episodes, verify and what a run says have no word for an outcome."""
    lab = tmp_path / "lab"
    lab.mkdir()
    folder = make_campaign(lab, ZEBRAS, entropy=ENTROPY, budget=12.0).folder
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    seen = see_all(lab, folder, said, capsys)
    shown = {name: text for name, text in seen.items() if name.startswith(("run", "status", "episodes", "verify"))}
    assert len(shown) >= 8
    assert found_in(shown, ("moved", "remaining", "success", "outcome", '"lost"', "items", "score:", "rate")) == []


def test_a_run_that_ends_at_an_arm_that_does_not_answer_names_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Why it does not answer is kept beside the seal alone."""
    lab, arms, said = tmp_path / "lab", [*ZEBRAS, DYING], []
    lab.mkdir()
    folder = make_campaign(lab, arms, entropy=ENTROPY).folder
    with pytest.raises(StateError) as ended:
        run_campaign(folder, said.append, manual=True)
    seen = see_all(lab, folder, [*said, str(ended.value)], capsys)
    assert "2 of 3 arms answer" in seen["run"] and found_in(seen, telling(arms)) == []
    assert "no okapi here" in (folder / "seal/readiness.log").read_text()


def test_which_arm_does_not_answer_cannot_be_seen(tmp_path: Path) -> None:
    """The same bytes whether the first or the second arm of the protocol is the one that does not answer."""
    seen = []
    for place in range(2):
        lab, said = tmp_path / f"lab{place}" / "lab", []
        lab.mkdir(parents=True)
        arms = [policy("zebra-policy", skill="swift"), HUMAN]
        arms.insert(place, DYING)
        folder = make_campaign(lab, arms, entropy=ENTROPY).folder
        with pytest.raises(StateError) as ended:
            run_campaign(folder, said.append, manual=True)
        bodies = [event.body for event in events_of(folder)[1:] if event.kind != Kind.RUN_STARTED]
        seen.append((said, str(ended.value), bodies))
    assert seen[0] == seen[1]


@pytest.mark.real_time
def test_no_process_shows_an_arm_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Command line and environment of every process of a live run, its locks, logs and output, all the while."""
    lab, arms, log = tmp_path / "lab", [*ZEBRAS, DYING], tmp_path / "run.log"
    lab.mkdir()
    given = {"live": True, "budget": 2.0, "max_voids": 1, "cell": NEVER_HELD}
    folder = make_campaign(lab, arms, entropy=ENTROPY, **given).folder
    words, leaks, watched = telling(arms), [], Counter[str]()
    run = start_run(folder, live=True, log=log)
    patience = Patience()
    try:
        while run.poll() is None and not patience.over():
            for pid in family(run.pid):
                shown = look_at_process(pid)
                watched[str(pid)] += 1
                leaks += found_in(shown, words)
            locks = {
                str(path): path.read_text() for path in (*lab.rglob("*.lock"), *(lab / "campaigns").glob("*/.lock"))
            }
            leaks += found_in(locks, words)
            CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 10)
    finally:
        run.terminate()
        assert end_of(run) == 0, log.read_text()
    kinds = Counter(event.kind for event in events_of(folder))
    assert kinds[Kind.OUTCOME_RECORDED] == 2 and kinds[Kind.TRIAL_SKIPPED] == 1
    assert len(watched) >= 6, "run, recorder, arm and three controllers were watched"
    assert leaks == []
    assert found_in(see_all(lab, folder, [log.read_text()], capsys), words) == []


def family(parent: int) -> list[int]:
    """A process and its children."""
    found = [parent]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text("utf-8", "replace").rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
        except OSError:
            continue  # it ended while it was looked at
    return found


def look_at_process(pid: int) -> dict[str, str]:
    """What any user of the host can see of a process; its environment as the same user can."""
    shown = {}
    for name in ("cmdline", "environ", "comm"):
        try:
            shown[name] = Path(f"/proc/{pid}/{name}").read_bytes().decode("latin-1")
        except OSError:
            continue  # it ended while it was looked at
    return shown
