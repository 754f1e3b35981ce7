"""What a trial asks of a person's hands: six keys and no typing for a clean one, and the record of keys and seconds."""

from __future__ import annotations

from support.runs.run_bench import Bench
from support.screens.console_bench import NARROW, Desk, at_console, both_sizes, evening, flat

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.reporting.times.hours import hours
from labctl.runtime.campaign_writer import Hands

MOST_KEYS = 6  # issue 18, point 16
STAGES = {"arming_s": 'stages = ["reached", "placed"]\nfailure_tags = ["missed"]\narming_s'}
CLEAN = ("enter", "a", "ctrl+s")  # the score of an episode in which every item was moved


async def opened(desk: Desk) -> None:
    await desk.press("enter", "enter")


async def clean_trial(desk: Desk, *, moved: int = 2) -> list[str]:
    """One trial without a hitch, from its order to its score; the keys that it took."""
    pressed: list[str] = []

    async def press(*keys: str) -> None:
        pressed.extend(keys)
        await desk.press(*keys)

    await press("enter")
    await desk.home()
    await press("enter")
    episode = await desk.ready()
    await press("enter")
    await desk.wait(4.0)
    await desk.go(episode)
    for _ in range(moved):
        await desk.event("success", episode)
    await desk.wait(0.2)
    await desk.sealed(episode)
    await press(*CLEAN)
    return pressed


@both_sizes
def test_a_clean_trial_takes_at_most_six_keys_and_no_typing(tmp_path, size):
    async def play(desk: Desk) -> None:
        await opened(desk)
        pressed = await clean_trial(desk)
        assert "1/2 trials" in desk.text(), "it is scored, and the next one offered"
        assert len(pressed) <= MOST_KEYS
        assert set(pressed) <= {"enter", "a", "ctrl+s"}, "nothing is typed"

    with evening(tmp_path, protocol=STAGES) as bench:
        at_console(bench, play, size=size)
        body = bench.events(Kind.OUTCOME_RECORDED)[-1].body
    assert (body["outcome"]["moved"], body["outcome"]["lost"]) == (2, 0)
    assert body["outcome"]["stage_reached"] == "placed", "where all is done, the last stage is reached"
    assert body["hands"]["keys"] == len(CLEAN) + 3


@both_sizes
def test_so_does_one_that_a_person_ends_by_hand(tmp_path, size):
    """E and then A: it ended and all of it was done, so that the form to score it opens by itself, filled in. It took
    eight: E twice, ENTER for the form and A in it.
    """
    keys = ("enter", "enter", "enter", "e", "a", "ctrl+s")
    assert len(keys) <= MOST_KEYS

    async def play(desk: Desk) -> None:
        await opened(desk)
        await desk.press(keys[0])
        await desk.home()
        await desk.press(keys[1])
        episode = await desk.ready()
        await desk.press(keys[2])
        await desk.wait(4.0)
        await desk.go(episode)
        await desk.press(keys[3])
        assert "A instead: all of it was done" in flat(desk.text())
        await desk.press(keys[4])
        assert not desk.asked(), "nothing is asked while the recording is sealed"
        await desk.sealed(episode)
        assert desk.asked() and "all moved: 2 items" in desk.text() and "so 0 remain" in desk.text()
        await desk.press(keys[5])
        assert "1/2 trials" in desk.text()

    with evening(tmp_path, protocol=STAGES) as bench:
        at_console(bench, play, size=size)
        assert [event.body["reason"] for event in bench.events(Kind.EPISODE_ENDED)] == ["operator"]
        body = bench.events(Kind.OUTCOME_RECORDED)[-1].body
    assert (body["outcome"]["moved"], body["outcome"]["lost"], body["outcome"]["stage_reached"]) == (2, 0, "placed")
    assert body["hands"]["keys"] == len(keys)


def test_a_ends_an_episode_only_right_after_e_and_its_form_waits_for_what_stands_open(tmp_path):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("a")
        assert "nothing waits for an acknowledgement" in desk.text()
        await desk.press("e")
        await desk.wait(2.5)
        await desk.press("a")
        assert not desk.bench.events(Kind.EPISODE_ENDED), "E was too long ago"
        await desk.press("e", "a", "c")
        await desk.sealed(episode)
        assert not desk.asked(), "a page is open, which somebody reads"
        await desk.press("escape")
        assert desk.asked()
        await desk.press("escape")
        await desk.wait(1.0)
        assert not desk.asked(), "it opens by itself once; ENTER opens it again"
        await desk.press("enter")
        assert desk.asked() and "so 2 remain" in desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play)


def test_in_a_text_a_is_a_letter(tmp_path):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "tab", "tab")
        await desk.type("a jam")
        await desk.press("ctrl+s")

    with evening(tmp_path) as bench:
        at_console(bench, play)
        outcome = bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]
    assert (outcome["moved"], outcome["notes"]) == (0, "a jam")


def test_keys_and_seconds_of_a_trial_are_journalled_and_stand_beside_the_robots(tmp_path):
    async def play(desk: Desk) -> None:
        await opened(desk)
        await desk.wait(30.0)  # nobody orders the trial
        await desk.press("enter")
        await desk.wait(5.0)  # the robot is on its way
        await desk.home()
        await desk.wait(20.0)  # the scene is being set
        await desk.press("w", "escape", "enter")
        episode = await desk.ready()
        await desk.press("enter")
        await desk.wait(4.0)
        await desk.go(episode)
        await desk.wait(10.0)
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.wait(7.0)
        await desk.press("enter", "a", "ctrl+s")
        await clean_trial(desk)

    with evening(tmp_path) as bench:
        at_console(bench, play, size=NARROW)
        first, second = (event.body["hands"] for event in bench.events(Kind.OUTCOME_RECORDED))
        record = record_of(bench.events())
    assert first["keys"] == 1 + 3 + 1 + 2 + 3
    # 30 s + 20 s + 7 s of waiting, and what the bench lets pass around them: less than 2 s
    assert 57.0 <= first["waited_s"] < 59.0
    assert second["keys"] == len(CLEAN) + 3 and second["waited_s"] < 2.0
    found = hours(record)
    console = found["total"]["console"]
    assert (console["trials"], console["keys"]) == (2, first["keys"] + second["keys"])
    assert console["waited_s"] == first["waited_s"] + second["waited_s"]
    assert 10.0 <= console["robot_s"] < 13.0


def test_a_trial_whose_beginning_another_run_saw_has_no_hands():
    hands = Hands()
    hands.note(Kind.RUN_STARTED, 0, begun=True)
    hands.pressed(3)
    assert hands.body(5 * SECOND) == {}
    hands.note(Kind.OUTCOME_RECORDED, 5 * SECOND, begun=False)
    hands.pressed(2)
    assert hands.body(6 * SECOND) == {"hands": {"keys": 2, "waited_s": 1.0}}


def test_what_no_console_ordered_has_no_hands(bench: Bench):
    bench.begin()
    episode = bench.start()
    assert episode and not any("hands" in event.body for event in bench.events())


def test_what_was_said_with_an_end_that_never_came_about_is_not_said_of_another(tmp_path):
    """E and A were lost on their way, and the episode was ended as it stands."""

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        desk.link.delivers = False
        await desk.press("e", "a")
        desk.link.delivers = True
        await desk.press("e", "e")
        await desk.sealed(episode)
        assert not desk.asked()
        await desk.press("enter")
        assert "so 2 remain" in desk.text()

    with evening(tmp_path) as bench:
        at_console(bench, play)
