"""Sections of the report that only a campaign can fill: interventions, timing of its traces, switches, resources.

May not: read a campaign (it is given one plain dict, any key of which may be missing), rank, or claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.analysis.binary.rates import wilson
from labctl.analysis.episode_facts import Adaptability, Measure, Switch
from labctl.analysis.numerals import MISSING, NOT_REACHED, count, estimate, listing, number, percent
from labctl.analysis.report.figures import Look, records_csv
from labctl.analysis.report.lab_facts import AnswerTimes, Lab, Line
from labctl.analysis.report.lab_tables import cell_column, cell_in, spread_of
from labctl.analysis.report.sections import historical_section, judgement_section, linked_section, sensor_section
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

RESOURCES_HEADING = "What servers report about themselves"
NOT_REPORTED, NO_SERVER = "not reported", "no server"
# Key of `told` in an answer time -> heading and what one unit of it is worth in the table.
RESOURCES = (
    *(("gpu_memory_mb", "GPU memory MB", 1.0), ("memory_mb", "Memory MB", 1.0)),
    *(("model_mb", "Model MB", 1.0), ("parameters", "Parameters, millions", 1e-6)),
)
RESOURCES_NOTE = (
    "By the servers’ own account; labctl measured none of it. Times: median / 95th percentile over the answers that "
    "report one. Rest: what was left of the time from question to answer beyond the server’s whole call, which is the "
    "network, the codec and preparing pictures. Memory is the greatest that was reported, in MB of 10⁶ bytes."
)
OF_CELLS = (
    "Blocks and operators bear the name of their cell. Cells may run at once: their sum is what rigs and people took, "
    "and not how long it was by the clock."
)
ADAPTABILITY_HEADING = "Adaptability: after a switch of the instruction"


def sections(lab: Lab, helped: Mapping[str, float | None], styles: Mapping[str, Look]) -> list[Section]:
    """Every section that the lab has something for, in the report's order. helped: the share of an arm's operations
    that the analysis saw a person's hand in, where it did.
    """
    people = judgement_section.section(lab.get("judgements"))
    then = historical_section.section(lab.get("historical"), lab.get("historical_by_cell") or {})
    linked = linked_section.section(lab.get("linked"))
    sensors = sensor_section.section(lab.get("sensors"), styles)
    made = (then, linked, _interventions(lab, helped), people, _stress(lab), sensors, _hours(lab))
    return [section for section in made if section is not None]


def files(lab: Lab) -> dict[str, bytes]:
    """Tables as CSV files by name: those of a linked campaign, and stress measures of every episode."""
    made, stress = linked_section.files(lab.get("linked")), lab.get("stress")
    if stress and stress.get("episodes"):
        made["figures/stress.csv"] = records_csv(stress["episodes"])
    switched = stress.get("adaptability") if stress else None
    if switched and switched.get("episodes"):
        made["figures/adaptability.csv"] = records_csv(switched["episodes"])
    return made


def _hours(lab: Lab) -> Section | None:
    found = lab.get("hours")
    total = found.get("total") if found else None
    if not found or not total or not total["total_s"]:
        return None
    parts = list(total["by"])
    tables = []
    cells = found.get("cells", ())
    several = len(cells) > 1
    for heading, of, lines in (
        *((("By cell", "Cell", [*cells, total]),) if several else ()),
        ("By block", "Block", [*found["blocks"], total]),
        ("By operator", "Operator", found["operators"]),
    ):
        columns = (
            *(Column(of, "text"), Column("Trials scored"), Column("Minutes in all"), Column("Minutes per trial")),
            *(Column("Keys per trial"), Column("Operator per trial"), Column("Robot per trial")),
        )
        rows = tuple(
            (
                str(line["of"]),
                count(line["trials"]),
                number(line["total_s"] / 60),
                number(line["total_s"] / 60 / line["trials"]) if line["trials"] else MISSING,
                *_of_a_trial(line),
                *(number(line["by"][part] / 60) for part in parts),
            )
            for line in lines
        )
        tables.append((heading, Table((*columns, *(Column(part.capitalize()) for part in parts)), rows)))
    holds = "; ".join(f"{code} {number(seconds / 60)} min" for code, seconds in total["holds"].items())
    words = "; ".join(f"{part}: {text}" for part, text in (found.get("what") or {}).items())
    note = (
        f"Minutes while a run went, from the journal. {words}. Holds by reason: {holds or 'none'}. Two operators of "
        "one session have its time each."
    )
    note += f" {OF_CELLS}" if several else ""
    return Section("hours", "Where the hours went", (), tuple(tables), note)


def _of_a_trial(line: Line) -> tuple[str, str, str]:
    """Keys, and minutes of operator and robot, of a mean trial; of how many, where these are not all."""
    found, trials, ran_s = line.get("console"), line["trials"], line.get("ran_s")
    robot = MISSING if ran_s is None or not trials else number(ran_s / 60 / trials)
    if not found or not (known := found.get("trials")):
        return MISSING, MISSING, robot
    of = f" of {known}" if known != trials else ""
    return f"{number(found['keys'] / known)}{of}", f"{number(found['waited_s'] / 60 / known)}{of}", robot


def _stress(lab: Lab) -> Section | None:
    found = lab.get("stress")
    entries = found.get("arms") if found else None
    if not found or not entries:
        return None
    rows = tuple(
        (
            entry["arm"],
            *cell_in(entry.get("cell")),
            count(entry["episodes"]),
            _measured(entry["inference_hz"], digits=2),
            _measured(entry["latency_s"], digits=0, scale=1000),
            _measured(_per_second(entry["latency_s"]), digits=2),
            number(entry["latency_worst_p95_s"] and 1000 * entry["latency_worst_p95_s"], 0),
            _measured(entry["stability"], digits=3),
        )
        for entry in entries
    )
    columns = (
        *(
            ARM,
            *cell_column(entry.get("cell") for entry in entries),
            Column("Episodes"),
            Column("Questions per s [95 %]"),
            Column("Latency ms [95 %]"),
        ),
        Column("1 / latency Hz [95 %]"),
        *(Column("Worst episode’s 95th percentile ms"), Column("Stability [95 %]")),
    )
    adaptability = adaptability_table(found.get("adaptability"))
    more = {ADAPTABILITY_HEADING: adaptability, RESOURCES_HEADING: resources_table(lab.get("answer_times") or ())}
    switched = "" if adaptability else " Adaptability is not measured: this protocol switches nothing."
    note = (
        "Latency: from the capture of the state to the first action of its answer, answers that were not used left "
        "out. NEBULA’s inference frequency is 1 / latency (its table 4: 16.98 Hz and 58.62 ms), how fast an arm could "
        "be asked; questions per s are how often it was, fewer the longer its chunks. Stability: exp(−mean |a(t) − "
        "a(t−1)|), the Euclidean norm over joints in rad, on the targets sent to the "
        f"arm between go and end, read at {number(found.get('rate_hz'), 0)} Hz for every arm; 1 is standing still, so "
        "an arm that does nothing is the most stable. Means over episodes, t intervals with one episode a unit."
        f"{switched} Each episode’s values: figures/stress.csv."
    )
    out = len(found.get("taken_over") or [])
    if out:
        note += f" Left out: {out} episode{'s' if out > 1 else ''} in which a person took over the arm."
    beside = [(heading, table) for heading, table in more.items() if table]
    return Section("stress", "Stress measures", (), (("", Table(columns, rows, note)), *beside))


def _per_second(latency_s: Measure) -> Measure:
    """1 / latency in Hz, NEBULA's inference frequency, its interval turned round; None without a latency above 0."""
    value, ci = latency_s["value"], latency_s["ci"]
    if not value:
        return {"value": None, "ci": None, "episodes": latency_s["episodes"]}
    ends = None if ci is None or not ci[0] else [1 / ci[1], 1 / ci[0]]
    return {"value": 1 / value, "ci": ends, "episodes": latency_s["episodes"]}


def _measured(found: Measure, *, digits: int = 1, scale: float = 1.0) -> str:
    return estimate(found["value"], found["ci"], digits=digits, scale=scale)


def _interventions(lab: Lab, helped: Mapping[str, float | None]) -> Section | None:
    entries = lab.get("interventions") or []
    if not entries:
        return None
    kinds = list(dict.fromkeys(kind for entry in entries for kind in entry["by_kind"]))
    rows = []
    for entry in entries:
        n, touched = entry["episodes"], entry["touched"]
        share = estimate(touched / n, wilson(touched, n), scale=100) if n else MISSING
        rows.append(
            (
                entry["arm"],
                f"{count(touched)} / {count(n)}",
                share,
                percent(helped.get(entry["arm"])),
                count(entry["interventions"]),
                *(count(entry["by_kind"].get(kind, 0)) for kind in kinds),
                number(entry["per_hour"]),
                f"{number(entry['touched_s'])} / {number(entry['robot_s'])}",
                count(entry["moved"]),
                count(entry["unaided"]),
            )
        )
    columns = (
        *(ARM, Column("Touched / scored episodes"), Column("% [95 %]"), Column("Or stopped %")),
        Column("Interventions"),
        *(Column(kind.replace("_", " ").capitalize()) for kind in kinds),
        *(Column("Per robot-hour"), Column("Seconds touched / run"), Column("Items moved"), Column("Unaided")),
    )
    note = (
        "An intervention is a person's touch between go and the end, as recorded while it went on. The denominator is "
        "every scored episode that got to go; void ones are in neither number. Touched episodes stay in every other "
        "number as they were scored; unaided leaves out each item during whose time a person touched the episode. "
        "Intervals are Wilson's, one episode a unit. Or stopped: the intervention rate of the JSON, which counts "
        "episodes that a stop for safety ended too, of all scored ones."
    )
    return Section("interventions", "Interventions", (), (("", Table(columns, tuple(rows), note)),))


def adaptability_table(found: Adaptability | None) -> Table | None:
    """The report's table; None where the protocol switches nothing."""
    entries = found.get("arms") if found else None
    if not found or not entries:
        return None
    columns = (
        *(
            ARM,
            *cell_column(entry.get("cell") for entry in entries),
            Column("Switch", "text"),
            Column("Met / scored episodes"),
            Column("Did as it asks"),
        ),
        *(
            Column("% [95 %]"),
            Column("Moved any item after it"),
            Column("Items per min before"),
            Column("Items per min after"),
            Column("Median s to the first"),
        ),
        Column("Asked with it after s [95 %]"),
    )
    rows = tuple(
        (
            entry["arm"],
            *cell_in(entry.get("cell")),
            entry["switch"],
            f"{count(entry['met'])} / {count(entry['episodes'])}",
            MISSING if entry["succeeded"] is None else f"{count(entry['succeeded'])} / {count(entry['met'])}",
            estimate(entry["share"], entry["ci"], scale=100),
            f"{count(entry['moved'])} / {count(entry['met'])}" if entry["met"] else MISSING,
            _per_minute(entry["moved_before"], entry["before_s"]),
            _per_minute(entry["moved_after"], entry["after_s"]),
            NOT_REACHED if entry["first_s"] == "inf" else number(entry["first_s"]),
            estimate(entry["asked_s"]["value"], entry["asked_s"]["ci"], digits=2),
        )
        for entry in entries
    )
    switches = "; ".join(
        f"{one['name']}, {one['at_s']:g} s after go: “{one['instruction'].rstrip('.')}”" for one in found["switches"]
    )
    note = (
        f"The same in every episode of every arm: {switches}. Met: the controller took it while the episode ran; "
        "one that was over before is in no other number, so an arm that is done early meets it in its slow episodes "
        f"only. {_judged_by(found['switches'])} After it: up to the next switch or the end, by what the labels count "
        "as moved, whatever the instruction asks, so an arm that is deaf to a switch moves items too. Intervals of "
        "shares are Wilson’s, one episode a unit. Median: Kaplan–Meier; an episode without an item "
        "after it is censored where its stretch ends, or never has one if all that was left was lost or it stopped for "
        "safety. The first may have been under way at the switch. After is also later: fewer items are left, so "
        "compare arms, not an arm with its own past. A person can read the script, a policy cannot. Asked with it: "
        "from the switch to the first question that carried it, which waits for the chunk before it. Each episode’s "
        "values: figures/adaptability.csv."
    )
    return Table(columns, rows, note)


def _judged_by(switches: Sequence[Switch]) -> str:
    tags = [f"“{one['ignored']}” ({one['name']})" for one in switches if "ignored" in one]
    if not tags:
        return (
            "Did as it asks: nobody judged it, and no arm is called adaptable; a protocol that names one of its "
            "failure_tags as a switch’s `ignored` has the assessor say it."
        )
    return f"Did as it asks: an item was moved after it and the assessor did not tick {listing(tags)}."


def _per_minute(moved: int, seconds: float) -> str:
    return number(60.0 * moved / seconds) if seconds else MISSING


def resources_table(entries: Sequence[AnswerTimes]) -> Table | None:
    """One row per arm that was asked anything, or None without any. entries: `answer_times` of the lab, any key of
    which may be missing; by_hand: a person, who has no server.
    """
    rows = tuple(_resources(entry) for entry in entries)
    if not rows:
        return None
    columns = (
        *(
            ARM,
            *cell_column(entry.get("cell") for entry in entries),
            Column("Answers"),
            Column("Server’s inference ms"),
            Column("Rest of the answer ms"),
        ),
        *(Column(name) for _, name, _ in RESOURCES),
    )
    return Table(columns, rows, RESOURCES_NOTE)


def _resources(entry: AnswerTimes) -> tuple[str, ...]:
    asked, unanswered = entry.get("questions"), entry.get("unanswered") or 0
    answers = count(None if asked is None else asked - unanswered)
    missing = NO_SERVER if entry.get("by_hand") else NOT_REPORTED
    reported = entry.get("told") or {}
    times = (spread_of(entry.get(key), 1000, 1, missing) for key in ("server_s", "rest_s"))
    values = ((reported.get(key), scale) for key, _, scale in RESOURCES)
    sizes = (missing if value is None else number(value * scale, 0) for value, scale in values)
    return (str(entry["arm"]), *cell_in(entry.get("cell")), answers, *times, *sizes)
