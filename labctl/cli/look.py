"""`labctl status` and `labctl episodes`: look at what happened.

May not: write, or print an arm or an outcome that a blind role must not see (`labctl.viewing.status` decides what there
is).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labctl.cli import completing
from labctl.cli.options import (
    PATH,
    campaign_argument,
    campaign_folders,
    example,
    json_option,
    lab_option,
    print_json,
    print_table,
    progress,
    unverified_option,
)
from labctl.errors import InputError, LabctlError
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.locks import CONTACT

if TYPE_CHECKING:
    from labctl.analysis.report.lab_facts import Hours
    from labctl.cli.contract.forms import Unread
    from labctl.core.record import Record
    from labctl.store.campaign import Campaign


@click.command(
    epilog=example(
        "labctl status",
        "labctl status first --json",
        "labctl status first --hours",
        "labctl status first --page hours.html",
        "labctl status first --spans http://localhost:4318",
        "OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=0 labctl status first --spans http://localhost:5000",
    )
)
@campaign_argument(required=False)
@click.option("--hours", "with_hours", is_flag=True, help="Also where the hours of its runs went.")
@click.option("--page", type=PATH, metavar="F.html", help="Write where the hours went as a page; needs CAMPAIGN.")
@click.option(
    "--spans",
    metavar="F.json|URL",
    help="Write where the hours went as spans of OpenTelemetry, or give them to a collector; needs CAMPAIGN.",
)
@unverified_option
@lab_option
@json_option
def status(
    campaign: str | None,
    with_hours: bool,
    page: Path | None,
    spans: str | None,
    unverified: bool,
    lab: Path | None,
    as_json: bool,
) -> int:
    """Where a campaign stands: phase, progress, the trial whose turn it is, holds. Without CAMPAIGN, all of the lab's.

    --hours: reset, staging, arming, running, scoring and holds by reason, per block and operator, and per trial. Arms
    and outcomes are not shown: whoever reads this may still have to be blind. The journal is verified first, the
    recordings are not. One of the lab's that cannot be opened is said, and the exit code is that of it alone.
    """
    from labctl.reporting.judgements import second_assessor
    from labctl.reporting.times.hours import hours
    from labctl.reporting.times.hours_page import write_page
    from labctl.reporting.times.timeline import timeline
    from labctl.runtime.lab_modules import edited_lines
    from labctl.store.verifying.verified import JOURNAL_ALONE, verified
    from labctl.viewing.status import standing

    folders = campaign_folders(campaign, lab)
    for option, given in (("--page F.html", page), ("--spans F.json", spans)):
        if given is not None and not campaign:
            raise InputError(f"{option.split()[0]} is of one campaign: labctl status CAMPAIGN {option}")
    if page is not None:
        _refuse_other_page(page)
    if spans is not None and "://" not in spans and Path(spans).suffix.lower() != ".json":
        raise InputError(f"--spans {spans}: a file of spans ends in .json")
    found: list[dict[str, Any]] = []
    killed: list[str] = []  # a line for each found
    unread: list[Unread] = []
    left = 0
    for folder in folders:
        try:
            with verified(folder, JOURNAL_ALONE, unverified=unverified or not campaign) as shown:
                entry = {**standing(shown.campaign.state), **({"unverified": shown.broken} if shown.broken else {})}
                if as_json and (second := second_assessor([shown.campaign.record()])):
                    entry["second_assessor"] = second
                if with_hours or page is not None:
                    entry["hours"] = hours(shown.campaign.record())
                if page is not None:
                    lines = timeline(shown.campaign.record())
                    write_page(entry["hours"], page, broken=entry.get("unverified", ""), lines=lines)
                if spans is not None:
                    _give_spans(shown.campaign.record(), spans)
                is_open = entry["phase"] == "open"
                killed.append(_killed(shown.campaign) if is_open else "")
                if is_open and (edited := edited_lines(shown.campaign)):
                    entry["edited"] = edited
                found.append(entry)
        except LabctlError as error:
            if campaign:
                raise
            said = _as_named(folder) or error
            left = max(left, int(said.exit_code))
            unread.append({"name": folder.name, "error": str(said)})
            click.echo(f"{folder.name}: {said}", err=True)
    if as_json:
        print_json(
            {"schema": "labctl.status/2", "campaigns": found, "unread": unread, **({"page": str(page)} if page else {})}
        )
        return left
    if not found and not left:
        click.echo("no campaign yet; start one with: labctl open PROTOCOL.toml --cell CELL.toml")
    for number, entry in enumerate(found):
        if number:
            click.echo()
        _print_standing(entry, killed[number])
        if "hours" in entry:
            _print_hours(entry["hours"])
    if page is not None:
        click.echo(f"wrote {page}")
    if spans is not None:
        click.echo(f"{'sent to' if '://' in spans else 'wrote'} {spans}")
    return left


def _killed(campaign: Campaign) -> str:
    """That its run is gone, in a line; "" where one goes, or the last ended in order."""
    if not (campaign.folder / CONTACT).exists():
        return ""
    from labctl.runtime.attach import left_by_a_killed_run

    return left_by_a_killed_run(campaign)


def _as_named(folder: Path) -> LabctlError | None:
    """Why a campaign cannot be shown, as the verb says it of that campaign alone."""
    from labctl.store.verifying.verified import JOURNAL_ALONE, verified

    try:
        with verified(folder, JOURNAL_ALONE):
            return None
    except LabctlError as error:
        return error


def _refuse_other_page(page: Path) -> None:
    """What is no page is a file of somebody's that was named by mistake."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--page {page}: a page ends in .html")


def _give_spans(record: Record, to: str) -> None:
    from labctl.reporting.times.spans import document, send

    if "://" in to:
        send(document(record), to)
        return
    with file_errors(to):
        replace_file(Path(to), document(record))


def _print_hours(found: Hours) -> None:
    from labctl.reporting.times.hours import COLUMNS, cells, hold_lines

    total = found["total"]
    for of, lines in (("block", found["blocks"]), ("operator", found["operators"])):
        print_table((of, "trials", *COLUMNS), [cells(line) for line in (*lines, *([total] if of == "block" else []))])
    for line in hold_lines(total):
        click.echo(line)
    for name, words in found["what"].items():
        click.echo(f"{name}: {words}")


def _print_standing(entry: dict[str, Any], killed: str) -> None:
    if "unverified" in entry:
        click.echo(f"{entry['campaign']}: {entry['unverified']}")
    states = ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in entry["by_state"].items())
    progress = f"{entry['finished']} of {entry['trials']} trials finished ({states})"
    click.echo(f"{entry['campaign']}: {entry['phase']}, {progress}")
    if entry["voids"]:
        click.echo(f"voided attempts: {entry['voids']}")
    current = entry["current"]
    if current and entry["phase"] == "open":
        place = f"block {current['block'] + 1}, {current['condition']}"
        click.echo(f"next: trial {current['number']} of {entry['trials']}, {place}: {current['state']}")
    for line in (*([killed] if killed else []), *entry.get("edited", ())):
        click.echo(line)
    for hold in entry["holds"]:
        click.echo(f"hold {hold['code']}: {hold['text']}")
    if entry["faulted"]:
        click.echo(f"cell faulted: {entry['faulted']}; a person has to look and acknowledge it")
    click.echo(f"head: {entry['head']['seq']}:{entry['head']['hash']}")


@click.command(
    epilog=example(
        "labctl episodes",
        "labctl episodes first --clocks",
        "labctl episodes first --json",
        "labctl episodes first --page episodes.html",
        "labctl episodes first second --page both.html  # second was opened with: labctl extend first ...",
        "labctl episodes two --page two.html            # a joint campaign: all cells whose folders are in this lab",
    )
)
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...", shell_complete=completing.campaigns)
@click.option("--clocks", is_flag=True, help="Also say how the clocks of cameras and arm ran beside the host's.")
@click.option(
    "--page",
    type=PATH,
    metavar="F.html",
    help="Write a page: a table to sort and filter, with every video at one speed; of several campaigns side by side.",
)
@click.option("--masked", is_flag=True, help="With --page: as a blind role may see it, even after unblinding.")
@unverified_option
@lab_option
@json_option
def episodes(
    campaigns: tuple[str, ...],
    clocks: bool,
    page: Path | None,
    masked: bool,
    unverified: bool,
    lab: Path | None,
    as_json: bool,
) -> None:
    """List the episodes of a campaign. Their arms are named after unblinding only. The journal is verified first.

    --page writes a page to open in any browser, with its videos in a folder beside it. All arms play at one speed, real
    time unless the reader chooses another, from their go. Before unblinding it is masked: no arm, no outcome. Of two
    campaigns it shows both; what differs between them is said through their anchors alone, as `labctl report A B` does.
    Of a joint campaign (labctl joint), by its own name or by its cells' folders, it has all cells, each masked until
    that cell is unblinded.
    """
    from labctl.core.recorded.skew import clock_line
    from labctl.reporting.cells.parts import folders_of
    from labctl.store.verifying.verified import JOURNAL_ALONE, verified
    from labctl.viewing.status import recorded

    folders = [folder for name in campaigns or (None,) for folder in folders_of(name, lab)]
    if page is not None:
        if clocks:
            raise InputError("--page is a page by itself; leave --clocks out")
        _write_page(folders, page, masked=masked, unverified=unverified, as_json=as_json)
        return
    if len(folders) > 1 or masked:
        raise InputError("several campaigns, and --masked, go with --page F.html")
    folder = folders[0]
    with verified(folder, JOURNAL_ALONE, unverified=unverified) as shown:
        broken = shown.broken
        unverified_mark = {"unverified": broken} if broken else {}
        found = [{**entry, **unverified_mark} for entry in recorded(shown.campaign.record())]
    if broken and not as_json:
        click.echo(f"{folder.name}: {broken}")
    if as_json:
        print_json({"schema": "labctl.recorded/1", "campaign": folder.name, "episodes": found})
        return
    if not found:
        click.echo("no episode yet; run the campaign with: labctl run CAMPAIGN")
        return
    columns = ["episode", "trial", "block", "condition", "state", "ended", "void", "sealed", "gaps"]
    columns += [name for name in ("switched", "arm") if name in found[0]]
    shown = [  # JSON and tables count from 0
        {**entry, "block": entry["block"] + 1, "ended": _ended(entry["ended"], entry.get("ended_by"))}
        for entry in found
    ]
    print_table(columns, [[_cell(entry[column]) for column in columns] for entry in shown])
    if clocks:
        for entry in found:
            for stream, fit in entry["clocks"].items():
                click.echo(f"{entry['episode']}  {clock_line(stream, fit)}")


def _write_page(folders: Sequence[Path], page: Path, *, masked: bool, unverified: bool, as_json: bool) -> None:
    """Write it, and say where it is and how big."""
    from labctl.pages.episodes import write_page

    _refuse_other_page(page)
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a campaign is given twice; name each once")
    beside = []
    if len(folders) > 1 and not masked:
        from labctl.reporting.cells.parts import part_of
        from labctl.reporting.side_by_side import side_by_side

        joint = {folder: part["commitment"] for folder in folders if (part := part_of(folder)) is not None}
        beside = side_by_side(folders, joint)
    with progress("episodes", quiet=as_json) as say:
        size = write_page(folders, page, masked=masked, unverified=unverified, beside=beside, say=say)
    if as_json:
        print_json({"schema": "labctl.page/1", "file": str(page), "bytes": size, "masked": masked})
        return
    click.echo(f"page: {page} ({size / 1e6:.1f} MB with its videos)")


def _ended(reason: str | None, by: str | None) -> str | None:
    """Why it ended, and by whom where a person ended it."""
    return reason if by is None else f"{reason}, by {by}"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
