"""The assessor's queue: an episode's operations by three witnesses, confirmed, corrected or added to, blind to the arm.

May not: show an arm, a latency or another assessor's name, or write anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import DataTable, Label, Static

from labctl.clock import SECOND, Clock
from labctl.core.campaign_state import said_of
from labctl.core.event_bodies import OperationRecorded, Result
from labctl.core.published_state import Compare
from labctl.core.reviewed import RESULTS, Item, in_words, matched, seen, unsettled
from labctl.errors import LabctlError
from labctl.messages.judgements import PreferenceStated
from labctl.plain import count
from labctl.ui.console.asking import Confirm
from labctl.ui.console.form import Answer, Form, Line, Options, Unfit
from labctl.ui.console.keyrow import KeyRow
from labctl.ui.console.link import Json
from labctl.ui.console.measures import AskPreference, form
from labctl.ui.console.picture import Photos
from labctl.ui.console.words import words_of
from labctl.ui.review import measured
from labctl.ui.review.filmstrip import Filmstrip, Look
from labctl.ui.review.reviewing import Reviewing

WIDE, HIGH = 100, 32  # on less, lines stand close
FULL = 160  # columns from which the table's last column has room


class AskOperation(Form):
    """When an operation happened, and how it ended."""

    title_text = "An operation that is missing"
    ok_text = "Add"
    words = False

    def __init__(self, at_s: float | None = None) -> None:
        """at_s: the moment that is looked at, for a beginning."""
        super().__init__()
        self._at_s = at_s

    def fields(self) -> Iterator[Widget]:
        yield Label("seconds from go (the middle of the strip, or as the episode's timeline has it)")
        yield Line("" if self._at_s is None else f"{self._at_s:.2f}", id="at", type="number")
        yield Label("what came of it")
        yield Options([(result.replace("_", " "), result) for result in RESULTS], id="result", taken=["success"])

    def answer(self) -> Answer:
        try:
            at_s = float(self.needed("at", "the time"))
        except ValueError as error:
            raise Unfit("at", str(error) if isinstance(error, Unfit) else "the time is a number of seconds") from None
        return {"at_s": at_s, "result": self.chosen("result") or "success"}


class Review(Reviewing):
    """See the module. `load` gives the queue anew; `save(trial, operations, seen)` and `correct(trial, outcome, why,
    seen)` write, by the item that is shown;
    `watch(episode)` opens an episode; `look` gives the strip's pictures; `finish()` ends the review and says
    what comes next; `pairs` and `prefer` are of [preference]; `photos` gives the pictures of a
    rubric. Each may raise LabctlError; its line is shown.
    """

    TITLE = "labctl review"
    BINDINGS: ClassVar = [
        Binding("enter", "confirm", "confirm", priority=True),
        Binding("plus,i", "add", "add"),
        Binding("d,delete", "remove", "remove"),
        Binding("x", "turn", "moved/lost"),
        Binding("z", "undo", "undo"),
        Binding("w", "outcome", "outcome"),
        Binding("n", "skip", "next"),
        Binding("b", "prefer", "which was better"),
        Binding("f", "finish", "finish"),
        Binding("q", "quit", "leave"),
        Binding("o", "watch", "in Rerun"),
        Binding("left", "shift(-1)", show=False, priority=True),
        Binding("right", "shift(1)", show=False, priority=True),
        Binding("c", "camera", show=False),
    ]

    def __init__(
        self,
        load: Callable[[], Sequence[Item]],
        save: Callable[[str, list[OperationRecorded], int], None],
        correct: Callable[[str, Mapping[str, Json], str, int], None],
        watch: Callable[[str], None],
        look: Look | None = None,
        finish: Callable[[], str] | None = None,
        pairs: Callable[[], Sequence[tuple[Compare, PreferenceStated | None]]] = tuple,
        prefer: Callable[[PreferenceStated, str], None] | None = None,
        photos: Photos | None = None,
        *,
        hands: Clock | None = None,
    ) -> None:
        super().__init__(hands)
        self._photos = photos
        self._pairs, self._prefer = pairs, prefer
        self._load, self._save, self._correct, self._watch, self._look = load, save, correct, watch, look
        self._finish = finish
        self._items: Sequence[Item] = ()
        self._trial = ""  # the trial under review: its place in the queue changes with each correction
        self._operations: list[OperationRecorded] = []
        self._told: list[str] = []  # of the episode at hand

    def compose(self) -> ComposeResult:
        yield Label("", id="header", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Static("", id="line", markup=False)
                yield Static("", id="holds", markup=False)
                yield Static("", id="details", markup=False)
            yield DataTable(cursor_type="row", zebra_stripes=True, id="operations")
        yield Filmstrip(self._look)
        yield Static("", id="said", markup=False)
        yield KeyRow(rows=2)  # no other page has them

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns("#", "at, s from go", "came of it", "why", "in the traces")
        self._reload()

    def on_resize(self, event: Resize) -> None:
        self.screen.set_class(event.size.width < WIDE or event.size.height < HIGH, "narrow")

    @property
    def item(self) -> Item | None:
        return next((item for item in self._items if item.trial.id == self._trial), None)

    def _reload(self) -> None:
        self._items = self._load()
        self._take(self._items[0] if self._items else None)

    def _take(self, item: Item | None) -> None:
        self._trial = item.trial.id if item else ""
        self._operations = [op.copy() for op in item.operations] if item else []
        self._draw()
        table = self.query_one(DataTable)
        table.move_cursor(row=0)
        table.focus()

    def _draw(self) -> None:
        item, left = self.item, sum(item.reviewed is None for item in self._items)
        unsaid = len([pair for pair, stated in self._pairs() if stated is None])
        also = f" · of {count(unsaid, 'pair')} nobody has said which was better (b)" if unsaid else ""
        dispute = f"{len(unsettled(self._items))} in dispute, {left} of {len(self._items)} not reviewed"
        self.query_one("#header", Label).update(f"review · {dispute}{also}")
        table = self.query_one(DataTable)
        at = table.cursor_row
        table.clear()
        self._shows(self._trial, left, item and item.seen)
        if item is None:
            self.query_one("#line", Static).update("nothing to review")
            return
        outcome = item.trial.outcome
        assert outcome is not None
        self.query_one("#line", Static).update(f"{item.trial.episode} · {item.trial.condition}")
        went = [
            f"• outcome: moved {outcome.moved}, lost {outcome.lost}, of {outcome.items_staged} staged",
            f"• the operator counted {'no item while it ran' if item.counted is None else item.counted}",
        ]
        lines = [
            *(went if item.task is None else measured.lines(item.task, outcome)),
            f"• ended: {words_of(str(item.trial.ended))} after {item.since_go_s(item.trial.end_ns or 0):.1f} s",
            *(f"• a model, {text}" for text in item.models),
            f"• reviewed {item.progress}",
        ]
        self._told = lines
        changed = self._operations != item.operations
        now = replace(item, reviewed=self._operations, whose="these events") if changed else item
        wrong = "\n".join(f"✖ {text}" for text in now.differences)
        right = "these events and the outcome agree" if changed else "all witnesses agree"
        self.query_one("#holds", Static).update(wrong or f"✔ {right}")
        self.query_one("#holds", Static).set_class(not wrong, "agree")
        ordered = self._ordered
        traced, others = matched(item, ordered)
        rows: list[tuple[str, ...]] = []
        for number, (op, words) in enumerate(zip(ordered, traced, strict=True), 1):
            when = f"{item.since_go_s(op['t_ns']):.2f}"
            rows.append((str(number), when, op["result"].replace("_", " "), op["cause"] or "", words))
        for one in others:
            rows.append(("", f"{item.since_go_s(one['t_ns']):.2f}", "not counted", "", seen(one)))
        rows += [(*row, "") for row in measured.rows(item.task, outcome)] if item.task else []
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        table.move_cursor(row=at)
        self.look_at()

    @property
    def _ordered(self) -> list[OperationRecorded]:
        """The operations at hand as the table has them."""
        return sorted(self._operations, key=lambda op: op["t_ns"])

    def _chosen(self) -> OperationRecorded | None:
        row, ordered = self.query_one(DataTable).cursor_row, self._ordered
        return ordered[row] if 0 <= row < len(ordered) else None

    @on(DataTable.RowHighlighted)
    def look_at(self) -> None:
        """The strip shows the operation, the candidate that is none or the stage that is chosen; without one, go."""
        item, traces = self.item, self._traces()
        self.query_one("#details", Static).update("\n".join([*self._told, *traces]))
        if item is not None and item.trial.episode is not None:
            row, ordered = self.query_one(DataTable).cursor_row, self._ordered
            listed = [item.since_go_s(op["t_ns"]) for op in (*ordered, *matched(item, ordered)[1])]
            listed += [seconds or 0.0 for seconds in (item.trial.outcome and item.trial.outcome.reached_s) or ()]
            self.query_one(Filmstrip).show(item.trial.episode, listed[row] if 0 <= row < len(listed) else 0.0)

    def _traces(self) -> list[str]:
        """What the traces show of the chosen row, where its column has no room for it."""
        table = self.query_one(DataTable)
        if self.size.width >= FULL or not table.is_valid_row_index(table.cursor_row):
            return []
        words = str(table.get_row_at(table.cursor_row)[-1])
        return [f"• in the traces: {words}"] if words else []

    def action_confirm(self) -> None:
        """What stands is what happened: journal it, go to the next."""
        item = self.item
        if item is None:
            return
        if not self._done(lambda: self._save(item.trial.id, self._operations, item.seen)):
            self._look_again(item)
            return
        self._reload()
        whole = not unsettled(self._items)
        self._say(
            f"{item.trial.episode} reviewed{'; nothing else is in dispute: f finishes the review' if whole else ''}"
        )

    def _look_again(self, before: Item) -> None:
        """After a refusal: what is recorded may be another than was shown. What was changed here stays."""
        try:
            self._items = self._load()
        except LabctlError:
            return
        if self.item is None or self._operations == before.operations:
            self._take(self.item)
        else:
            self._draw()

    def action_watch(self) -> None:
        episode = self.item.trial.episode if self.item else None
        if episode is not None and self._done(lambda: self._watch(episode)):
            self._say("opening the episode, masked")

    def _without_operations(self) -> bool:
        """Whether the episode at hand has none, which is said."""
        task = self.item.task if self.item else None
        if task is not None:
            self._say(f"this task is judged by {task.measure}, not by operations; w corrects its outcome", wrong=True)
        return task is not None

    def _to_change(self) -> OperationRecorded | None:
        """The operation that is chosen; None where none is, which is said."""
        if self._without_operations():
            return None
        chosen = self._chosen()
        if chosen is None:
            rows = self.query_one(DataTable).row_count
            what = "that row is no operation: it was not counted" if rows else "no operation is chosen: there is none"
            self._say(f"{what}; + adds one", wrong=True)
        return chosen

    def action_add(self) -> None:
        if self._without_operations():
            return

        def answered(answer: Answer) -> None:
            if self.item is not None and self.item.trial.go_ns is not None:
                t_ns = self.item.trial.go_ns + round(float(str(answer["at_s"])) * SECOND)
                result: Result = next(known for known in RESULTS if known == answer["result"])
                cause = None if result == "success" else "reviewed"
                self._operations.append({"op_index": 0, "result": result, "t_ns": t_ns, "cause": cause})
                self._changed()

        self._asked(AskOperation(self.query_one(Filmstrip).at_s), answered)

    def action_remove(self) -> None:
        chosen = self._to_change()
        if chosen is not None:
            self._operations.remove(chosen)
            self._changed()

    def action_turn(self) -> None:
        """A success that was none, or a loss that was a success."""
        chosen = self._to_change()
        if chosen is not None:
            lost = chosen["result"] == "success"
            chosen |= {"result": "lost" if lost else "success", "cause": "reviewed" if lost else None}
            self._changed()

    def _changed(self) -> None:
        """Draw what was changed; what was refused before is said no more."""
        self._draw()
        self._say("changed; ENTER confirms it, z takes it back")

    def action_prefer(self) -> None:
        """Which of two was better: of the pair that this episode is of, else of the next of which nobody said it."""
        episode, all_pairs = self.item.trial.episode if self.item else None, self._pairs()
        here = [one for one in all_pairs if episode in (one[0]["first"], one[0]["second"])]
        chosen = next(iter([*here, *(one for one in all_pairs if one[1] is None)]), None)
        if chosen is None or (prefer := self._prefer) is None:
            self._say("no pair of episodes waits for a word on which was better", wrong=True)
            return

        def answered(answer: Answer) -> None:
            words = {key: str(answer[key]) for key in ("first", "second", "preferred", "why")}
            if self._done(lambda: prefer(PreferenceStated(**words), said_of(chosen[1]))):
                self._draw()
                self._say(f"recorded: {words['preferred']} of block {chosen[0]['block'] + 1}")

        self._asked(AskPreference(*chosen), answered)

    def action_undo(self) -> None:
        self._take(self.item)

    def action_skip(self) -> None:
        if self.item is not None:
            self._take(self._items[(self._items.index(self.item) + 1) % len(self._items)])

    def action_finish(self) -> None:
        """No more review of this campaign: asked once more, since nobody reviews it afterwards."""
        left = len(unsettled(self._items))
        if left or self._finish is None:
            text = f"in dispute and not reviewed yet: {count(left, 'episode')}; ENTER confirms one"
            self._say(text if left else "no review is open here")
            return
        finish = self._finish

        seen = f"{sum(item.reviewed is not None for item in self._items)} of {count(len(self._items), 'episode')}"
        title = f"Finish the review? Nothing is in dispute; {seen} looked at, the others stand as scored. "
        title += "Afterwards nobody changes an operation or an outcome."

        def answered(answer: Answer) -> None:
            self._done(lambda: self.exit(finish()))

        self._asked(Confirm(title, "Finish"), answered)

    def action_outcome(self) -> None:
        item = self.item
        if item is None or item.trial.outcome is None:
            return
        outcome = item.trial.outcome
        about = measured.about(item.task, outcome.items_staged)
        about["ended"], about["counted"] = str(item.trial.ended), item.counted or 0

        def answered(answer: Answer) -> None:
            kept: dict[str, Json] = {"tags": list(outcome.tags)}
            kept |= {} if item.task else {"stage_reached": outcome.stage_reached}
            why = str(answer.pop("why"))
            if not self._done(lambda: self._correct(item.trial.id, {**answer, **kept}, why, item.seen)):
                self._look_again(item)
                return
            self._items = self._load()
            self._draw()
            self._say(f"corrected: {self._now(item)}; ENTER confirms the episode")

        given: dict[str, Json] = {"moved": outcome.moved, "lost": outcome.lost, "notes": outcome.notes}
        given |= {"reached_s": list(outcome.reached_s or ()), "score": outcome.score}
        self._asked(form(about, given, why=True, photos=self._photos), answered)

    def _now(self, before: Item) -> str:
        """What the outcome of an episode is now, in words."""
        now = next((item for item in self._items if item.trial.id == before.trial.id), before)
        outcome = now.trial.outcome
        assert outcome is not None
        return in_words(now.task, outcome) if now.task else f"moved {outcome.moved}, lost {outcome.lost}"
