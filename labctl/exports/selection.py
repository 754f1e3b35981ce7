"""What may leave in an export, and to whom: the rows of the operations table, the episodes whose recordings go along.

May not: read a recording, or let through what the campaign's phase or `--for-arm` hides. Every format takes what it
writes from here, so that none of them decides about masking.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

from labctl.config.cell_schema import SecondRobot
from labctl.core.design import drbg
from labctl.core.events import Event
from labctl.core.record import Record
from labctl.core.trial import TO_UNBLINDED, Trial
from labctl.errors import InputError, StateError
from labctl.plain import Json
from labctl.reporting.episodes_table import places_of
from labctl.reporting.operations_table import Row, filter_rows, operations, outcomes_of
from labctl.store.campaign import Campaign
from labctl.store.lab_folder import strangers
from labctl.streams import StreamSpec
from labctl.version import version
from labctl.viewing.episode import robot_model

SCHEMA = "labctl.export/1"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Chosen:
    """An episode whose recording may be exported. `arm` is None before unblinding; `outcome` is success or failure;
    `ended` is why its motion ended, as it counts.
    """

    episode: str
    trial: Trial
    arm: str | None
    outcome: str
    object: str
    ended: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What one export holds. `rows` may say more than `episodes`: with --for-arm the other arms' are there, masked.

    `trials`: by the episode's name in `rows`, masked or not; `places`: so too, as `places_of` has it among all that
    count, chosen or not. `masked`: before unblinding, so nothing that depends on the arm may be shown. `about` is where
    it all comes from.
    """

    rows: list[Row]
    episodes: list[Chosen]
    masked: bool
    about: dict[str, Json]
    trials: Mapping[str, Trial]
    _names: Mapping[str, str]
    places: Mapping[str, int | None] = field(default_factory=dict[str, int | None])

    def shows(self, spec: StreamSpec) -> bool:
        """Whether a stream may be exported."""
        return not self.masked or bool(spec.open_columns())

    def columns(self, spec: StreamSpec) -> list[int]:
        """Which columns of a stream may be exported."""
        return list(spec.open_columns() if self.masked else range(len(spec.columns)))

    def body(self, event: Event, shown: Collection[str]) -> dict[str, Json]:
        """What an event says, as it may be exported; shown: the names of the streams of its episode that may be."""
        body = dict(event.body)
        if self.masked and "streams" in body:
            body["streams"] = {name: entry for name, entry in body["streams"].items() if name in shown}
        return self.hide(body)

    @overload
    def hide(self, value: str) -> str: ...
    @overload
    def hide(self, value: Mapping[str, Json]) -> dict[str, Json]: ...
    def hide(self, value: str | Mapping[str, Json]) -> str | dict[str, Json]:
        """A text or an object with the name of every arm that is masked replaced, wherever it stands in a text or a
        key.
        """
        return _renamed(value, self._names) if isinstance(value, str) else _renamed_within(value, self._names)


def select(campaign: Campaign, where: Sequence[str] = (), for_arm: str | None = None) -> Selection:
    """The scored episodes of a campaign of which every `where` is true, masked for whom they are for.

    for_arm: this arm's episodes in full; the rows of the others stay in the table, which pairs need, under `other-1`,
    `other-2`, … and with episode and trial ids of their own.
    Raises StateError without a scored episode or for `for_arm` before unblinding, InputError for an unknown arm or a
    `where` that no episode fits.
    """
    record = campaign.record()
    rows = operations(record)
    name = campaign.folder.name
    if not rows:
        raise StateError(f"campaign {name} has no scored episode yet; nothing was written")
    unblinding = record.unblinding
    names = {} if for_arm is None else _mask_names(name, record, for_arm)
    kept, outcomes = rows, outcomes_of(record)
    for condition in where:
        kept = filter_rows(kept, condition, outcomes) if kept else kept
    episodes = _chosen(kept, record, outcomes)
    owners = {episode.id: trial for trial, episode in record.scored}
    of_rows = [owners.get(row["episode"]) for row in kept]
    place = places_of(rows, record.state.trials)
    at = [place[row["episode"]] for row in kept]
    if for_arm is not None and unblinding is not None:
        kept = _mask_rows(kept, names, for_arm, unblinding["secret_hex"])
        episodes = [chosen for chosen in episodes if chosen.arm == for_arm]
    if not kept:
        raise InputError(f"no episode of {name} has {' and '.join(where)}; nothing was written")
    trials = {row["episode"]: trial for row, trial in zip(kept, of_rows, strict=True) if trial is not None}
    places = {row["episode"]: number for row, number in zip(kept, at, strict=True)}
    selection = Selection(kept, episodes, unblinding is None, {}, trials, names, places)
    about = {**_about(campaign, where, for_arm), "masked": unblinding is None}
    selection.about.update(selection.hide(about))
    return selection


def _mask_names(name: str, record: Record, for_arm: str) -> dict[str, str]:
    """Each arm's name -> what an export for `for_arm` calls it. The order of the others is drawn anew for every arm."""
    unblinding, phase = record.unblinding, record.state.phase
    if unblinding is None:
        raise StateError(
            f"--for-arm {for_arm}: campaign {name} is {phase} and its arms are sealed; "
            f"{TO_UNBLINDED[phase]} it first, or export without --for-arm"
        )
    arms = sorted(set(record.arms.values()))
    if for_arm not in arms:
        raise InputError(f"--for-arm {for_arm}: campaign {name} has no such arm; its arms are: {', '.join(arms)}")
    secret = bytes.fromhex(unblinding["secret_hex"])
    others = sorted((arm for arm in arms if arm != for_arm), key=lambda arm: drbg(secret, f"mask:{for_arm}:{arm}"))
    return {for_arm: for_arm} | {arm: f"other-{number}" for number, arm in enumerate(others, 1)}


def _mask_rows(rows: Sequence[Row], names: Mapping[str, str], for_arm: str, secret_hex: str) -> list[Row]:
    secret = bytes.fromhex(secret_hex)

    def alias(letter: str, name: str) -> str:
        return f"{letter}-{drbg(secret, f'mask:{for_arm}:{name}', 5).hex()}"

    masked = []
    for row in rows:
        if row["arm"] != for_arm:
            ids = {"episode": alias("m", row["episode"]), "trial": alias("m", row["trial"])}
            row = {**row, **ids, "arm": names[row["arm"]]}
        masked.append({key: _renamed(value, names) if key == "cause" else value for key, value in row.items()})
    return masked


def _renamed_within(value: Mapping[str, Json], names: Mapping[str, str]) -> dict[str, Json]:
    def entry(value: Json) -> Json:
        if isinstance(value, Mapping):
            return _renamed_within(value, names)
        return [entry(one) for one in value] if isinstance(value, list | tuple) else _renamed(value, names)

    return {_renamed(key, names): entry(one) for key, one in value.items()}


def _renamed(value: T, names: Mapping[str, str]) -> T | str:
    """A text with each whole word that is an arm's name replaced; a longer name wins over one it contains."""
    if not names or not isinstance(value, str):
        return value
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    same = {name.lower(): label for name, label in names.items()}
    return re.sub(f"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", lambda m: same[m[0].lower()], value, flags=re.I)


def _chosen(rows: Sequence[Row], record: Record, outcomes: Mapping[str, Mapping[str, str]]) -> list[Chosen]:
    arms = record.arms
    objects = {row["episode"]: row["object"] for row in rows}
    return [
        Chosen(episode.id, trial, arms.get(trial.id), went["outcome"], objects[episode.id], went["end_reason"])
        for trial, episode in record.scored
        if episode.id in objects and (went := outcomes[episode.id])
    ]


def _second(robot: SecondRobot | None) -> dict[str, Json]:
    """Where the second robot of a cell stands, and how the two are named; nothing of a cell of one."""
    if robot is None:
        return {}
    base_m: list[Json] = [*robot.base_m]
    found: dict[str, Json] = {"first_name": robot.first_name, "name": robot.name}
    return {"second_robot": {**found, "base_m": base_m, "base_yaw_rad": robot.base_yaw_rad}}


def _about(campaign: Campaign, where: Sequence[str], for_arm: str | None) -> dict[str, Json]:
    """Where an export comes from: what it takes to check it against the record, and to make it again."""
    opened = campaign.opened
    seq, head = campaign.journal.head()
    return {
        "schema": SCHEMA,
        "labctl": version(),
        "campaign": opened["campaign"],
        "phase": str(campaign.state.phase),
        "head": f"{seq} {head}",
        "commitment": opened["commitment"],
        "kind": opened["kind"],
        "robot": " + ".join(
            robot_model(robot.driver, robot.options, shipped=strangers(campaign.folder))
            for robot in campaign.cell.robots
        ),
        **_second(campaign.cell.second_robot),
        "cell": opened["cell"],
        "fixture": opened["fixture"],
        "protocol": {key: opened["protocol"][key] for key in ("name", "sha256")},
        "where": list(where),
        "for_arm": for_arm,
    }
