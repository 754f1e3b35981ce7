"""What is verified is what is read: whatever shows a campaign opens it by the one reader,
labctl/store/verifying/verified.py.

A new way to open a campaign's file fails here until it goes through a named function of labctl/store, or is listed with
why it shows nothing of a record or who has verified it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Whatever makes something for people out of a record: each wing but these.
NOTHING_SHOWN = {
    "alerts": "tells what a run publishes, not what is recorded",
    "config": "reads what people write",
    "core": "pure",
    "joint": "asks for arms and gives them; `checking` verifies both sides",
    "messages": "between processes",
    "nodes": "of a run, which looks at the seal when it begins",
    "runtime": "the same; what it writes for a review is among ALSO",
    "store": "where the readers are",
    "templates": "files to begin with",
    "testing": "tries drivers",
}
ALSO = ("ui", "labctl/runtime/review_writer.py")

STORES = {"Campaign", "Journal", "TraceStore", "Ledger"}  # whose `open` opens a campaign
READERS = {"events_of", "campaigns_in", "read_heads", "opened_in", "open_all"}  # of labctl.store
FILES = {
    "read_text",
    "read_bytes",
    "AssetVideo",
    "EncodedImage",
    "load_photo",
    "read_frames",
    "frame_times",
    "open_video",
}
UNVERIFIED = {"in_passing"}

# file: {function: why it may}. Each has to be there: a line that no code needs any more fails too.
LISTED: dict[str, dict[str, str]] = {
    # a campaign as it is
    "labctl/reporting/campaign_report.py": {
        "_add_not_the_same: in_passing": "the seals of two campaigns; `linked_with` has verified the earlier",
        "report_linked: in_passing": "whether both seals are open; the report verifies both",
    },
    "labctl/checks/doctor.py": {"secrets_of_cell: read_text": "a cell file before it is sealed, of no campaign"},
    "labctl/reporting/clips/cutting.py": {
        "clips: in_passing": "of a report, which has verified it",
        "_pictures: read_frames": "as above; a video by the store's own reader",
    },
    "labctl/viewing/episode.py": {
        "find_episode: in_passing": "which campaign has it; shown is what was verified then",
        "look_at: in_passing": "`showing.views_of` and the export have verified it",
    },
    "labctl/viewing/showing.py": {"_live_cell: in_passing": "the shape of a cell, for what a run publishes"},
    "labctl/scene/sheet.py": {
        "scene_of: in_passing": "`labctl scene` has verified it with its photos",
        "_row: load_photo": "as above, and by the digest in the journal",
    },
    "labctl/cli/review.py": {
        "review.pairs: in_passing": "as `load`",
        "_second.load: in_passing": "`check_may_review` has verified it",
        "review.load: in_passing": "`check_may_review` has verified it; read anew after each review",
    },
    "labctl/cli/console.py": {
        "run_with_console: in_passing": "whether a trial is left; the run looks at what it goes by",
        "said_at_the_end: read_bytes": "what the run printed",
    },
    "labctl/cli/completing.py": {"_record: in_passing": "names after TAB, arms after unblinding alone"},
    "labctl/cli/__init__.py": {"call: open": "/dev/null, once nobody reads what is printed"},
    "labctl/cli/leaving.py": {"leave: open": "/dev/null, once what is printed has no room"},
    "labctl/cli/run.py": {
        "ended: in_passing": "how many trials are left",
        "run: in_passing": "the same, for --json",
    },
    "labctl/cli/export.py": {"export: read_text": "the table that was just written, for --out -"},
    "labctl/cli/keeping/joint.py": {"status: events_of": "counts of a seal host's journal"},
    "labctl/cli/lifecycle.py": {"_say_phase: in_passing": "the phase that this command has just written"},
    "labctl/cli/demo.py": {
        "last_ns: in_passing": "a time, to unblind at",
        "_say_what_next: read_text": "the report that was just written",
        "_fresh: read_text": "files of the wheel",
    },
    # files by a reader of the store, of what was verified
    "labctl/exports/annexb.py": {
        "access_units: open_video": "of the export, which has verified it",
        "stream_format: open_video": "as above",
    },
    "labctl/exports/lerobot_episode.py": {"plan: frame_times": "of the export, which has verified it"},
    "labctl/exports/retime.py": {
        "picture_size: open_video": "of the export, which has verified it",
        "retime: open_video": "as above",
        "_copied: open_video": "as above",
        "_levels: open_video": "as above",
    },
    "labctl/exports/splice.py": {
        "copy: open_video": "of the export, which has verified it",
        "_decoded: open_video": "as above",
        "_coded: open": "a video in memory that was just coded",
    },
    "labctl/exports/episode_files.py": {"_write: in_passing": "in each process of the export, which has verified it"},
    "labctl/exports/rosbag2.py": {
        "_frames: read_frames": "of the export, which has verified it",
    },
    "labctl/exports/workers.py": {
        "_finished: read_text": "what an export that was broken off had finished",
    },
    "labctl/pages/playable.py": {
        "played: open": "as below",
        "playable: open": "bytes of `sealed_video`, in memory",
        "pictures: open": "as above",
    },
    "labctl/pages/episodes.py": {"page_files: in_passing": "where the report has verified it"},
    "labctl/pages/episode_rows.py": {"_text: read_text": "files of the wheel"},
    "labctl/pages/recorded_videos.py": {"anchor: load_photo": "of the opening, by the digest in the journal"},
    "labctl/pages/reviewing.py": {"template: read_bytes": "files of the wheel"},
    "labctl/api/campaign.py": {"frames: read_frames": "of an episode whose recording was verified a moment ago"},
    "labctl/checks/keyframe_questions.py": {"pictures_at: read_frames": "of whoever asks, which has verified it"},
    # a stranger's folder, held against its manifest before anything of it is shown
    "labctl/publishing/guard.py": {
        "_digest: open": "its digest, of a plain file that the manifest lists",
        "_has_data: open": "where its holes are, no byte of it",
    },
    "labctl/publishing/manifest.py": {"read_form: read_bytes": "the manifest itself, up to its largest size"},
    "labctl/publishing/cells/seal_record.py": {
        "is_seal_record: read_bytes": "of what kind a manifest says it is, up to its largest size",
        "says_part: open": "what the first entry says of itself, to choose who verifies it",
        "read_seal_record: open": "entries of a plain file that the manifest lists, which `check` then verifies",
    },
    "labctl/publishing/cells/check.py": {
        "joint_of: events_of": "the first entry of a record that was verified a line before",
        "check_together: events_of": "all of it",
    },
    "labctl/publishing/cells/report.py": {
        "publish_joint: events_of": "a seal host's, which `verify_joint` has verified"
    },
    "labctl/cli/publishing/cells.py": {"verify_together: read_text": "certificates that whoever verifies trusts"},
    "labctl/publishing/check.py": {
        "_refuse_names: events_of": "names in it, before it is verified",
        "_journal_lines: open": "each line against an entry of the verified journal",
    },
    "labctl/publishing/archive.py": {
        "_unpack: open": "a member of an archive, no longer than it announces",
        "write_archive: open": "what was just published",
    },
    "labctl/publishing/again.py": {
        "at: read_bytes": "the report that was just made, and the one of a folder that holds",
    },
    "labctl/publishing/documents.py": {"_read: read_bytes": "as above"},
    "labctl/publishing/beside.py": {"made_beside: in_passing": "of a folder whose report was just made"},
    "labctl/publishing/cards.py": {"write_cards: read_text": "the report that was just made"},
    "labctl/publishing/shown.py": {"shown: read_text": "as above"},
    "labctl/publishing/site.py": {"_text: read_text": "files of the wheel"},
    "labctl/cli/publishing/publish.py": {"verify_published: read_text": "certificates that whoever verifies trusts"},
    "labctl/publishing/licences.py": {"licence_of: read_text": "a licence"},
    "labctl/publishing/leaving_out.py": {
        "_salts: read_text": "salts of the lab, which show nothing",
        "_salted: open": "digests of a campaign that `publish` has verified",
    },
    # what does not hold is what may have to be reported; nothing of a result is in it
    "labctl/cli/contract/schema.py": {"schema: read_bytes": "the file that it would replace"},
    "labctl/checks/bugreport.py": {
        "write_bugreport: Campaign.open": "the skeleton of a journal, whether it holds or not",
        "write_bugreport: read_bytes": "logs",
        "write_bugreport: read_text": "the cell's and the lab's settings",
    },
    "labctl/checks/telling_words.py": {"telling_words: Ledger.open": "names of arms, to take them out of texts"},
    "labctl/reporting/measured_report.py": {"asked_of: load_photo": "as above; the report was verified"},
    "labctl/reporting/interim_look.py": {"take_look: open_all": "journal and seal were verified; one word is shown"},
    "labctl/checks/offline_frames.py": {"_pictures: read_frames": "of `screen`, which has verified it"},
    "ui/rerun/parts.py": {
        "cameras: AssetVideo": "of a view, which was verified; Rerun reads the file",
        "cameras: EncodedImage": "as above",
        "description_of: read_text": "a file of the wheel",
    },
    # bytes, whatever they say, under their digests; what is restored is verified before anything is said of it
    "labctl/backup/repository.py": {
        "__init__: read_bytes": "the mark of a folder of backups",
        "snapshot: read_bytes": "a list of files, by its digest",
        "take: open": "a copy that was just made, for its digest",
        "copied: open": "a file of the lab, copied",
        "pieces: open": "a copy, held against its digest",
        "_damaged: open": "the same, so that it is read from the disk",
    },
    "labctl/backup/restoring.py": {"_write: open": "it writes"},
    "labctl/backup/snapshot.py": {
        "_note_head: events_of": "the number and hash of the last entry",
        "_is_database: open": "how a file begins",
    },
    # what a policy is asked about, and what is the queue's own
    "labctl/queue/dry_run.py": {"dry_run_main: in_passing": "`source_of` has verified it, in the process that asks"},
    "labctl/queue/book.py": {
        "_journal: Journal.open": "the queue's own journal, whose chain is held against its heads each time",
        "_looked: read_heads": "of that journal",
        "unsealed: read_bytes": "a file of the queue's seal, held against its digest",
    },
    "labctl/queue/acts.py": {
        "_write_arm: read_text": "a protocol that is not opened yet",
        "_take_out: read_text": "as above",
    },
    "labctl/queue/opened.py": {
        "opened_from: opened_in": "names of protocols, in a chain that it verifies",
        "_sealed_name: Ledger.open": "the name of a joint campaign's protocol",
    },
    "labctl/queue/estimates.py": {"names_in: read_text": "the lab's protocols, for their names"},
    "labctl/queue/lab_files.py": {
        "read_keys: read_text": "the lab's file of keys",
        "read_shifts: read_text": "the lab's shifts",
        "revoke: read_text": "as above",
        "trust: read_text": "as above, and a key's table from outside",
    },
    "labctl/cli/queueing/submit.py": {"sign: read_text": "the sender's own card"},
    "labctl/queue/request.py": {
        "read_signed: open": "a request of somebody outside",
        "_private: open": "the sender's own key",
    },
    "labctl/backup/moving.py": {
        "_finished: read_text": "the mark of a lab that was moved",
        "_heads: events_of": "the number and hash of the last entry",
    },
    "labctl/reporting/cells/parts.py": {"part_of: events_of": "which part a folder is; its report verifies it"},
    # files that are no campaign's
    "labctl/checks/site/judging.py": {"read_columns: read_text": "tables that a site gives"},
    "labctl/cli/keeping/qualify.py": {
        "_digest: read_bytes": "digests of files that were given",
        "_kit: read_text": "the kit",
    },
    "labctl/people/qualifications.py": {
        "qualifications: read_heads": "a journal of its own, held against them at once",
        "qualifications: events_of": "its entries, their chain checked at once",
    },
    "labctl/people/personal_codes.py": {"codes_of: read_bytes": "the lab's, of hashes; shows nothing"},
    "labctl/reporting/file_drawer.py": {
        "drawer: opened_in": "the lab's list, a chain that is checked line by line",
        "before: opened_in": "the same",
    },
    "labctl/exports/destination.py": {
        "_content_key: read_text": "what an export that was broken off was to be",
    },
    "labctl/checks/computer.py": {"check_sessions: read_text": "a setting of the kernel"},
    "labctl/checks/usage_reports.py": {"_rerun: read_text": "Rerun's settings"},
    "labctl/checks/clock_page.py": {"__init__: read_bytes": "a file of the wheel"},
    "labctl/publishing/rerun_views.py": {"page: read_text": "templates"},
    "ui/rerun/viewer_files.py": {"_licences: read_bytes": "of the viewer's package"},
    "ui/rerun/viewer_process.py": {"log_of: read_text": "what the viewer printed"},
}


def called(call: ast.Call) -> str | None:
    """What a call opens, None when it opens nothing."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=base), attr="open") if base in STORES:
            return f"{base}.open"
        case ast.Attribute(value=ast.Name(id="sqlite3" | "database_backend"), attr="connect" as name):
            return name
        case ast.Attribute(value=ast.Name(id="av" | "io" | "os"), attr="open") | ast.Attribute(attr="open"):
            name = "open"
        case ast.Attribute(attr=name) | ast.Name(id=name):
            pass
        case _:
            return None
    if name == "open":
        return None if writes(call) else "open"
    return name if name in READERS | FILES | UNVERIFIED else None


def writes(call: ast.Call) -> bool:
    """A mode that reads nothing; without one a file is read. Of a device or a page (`thing.open()`) there is none."""
    texts = [one.value for one in (*call.args, *(k.value for k in call.keywords)) if isinstance(one, ast.Constant)]
    modes = [text for text in texts if isinstance(text, str) and text and set(text) <= set("rwabx+t")]
    if modes:
        return not any("r" in mode or "+" in mode for mode in modes)
    return isinstance(call.func, ast.Attribute) and not call.args


def openings(tree: ast.AST, inside: str = "") -> Iterator[str]:
    """`function: what it opens` of a module, in order."""
    for node in ast.iter_child_nodes(tree):
        here = inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            here = f"{inside}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call):
            what = called(node)
            if what is not None:
                yield f"{inside}: {what}"
        yield from openings(node, here)


def found() -> dict[str, set[str]]:
    wings = [wing for wing in (ROOT / "labctl").iterdir() if wing.is_dir() and wing.name not in NOTHING_SHOWN]
    places = [*wings, *(ROOT / name for name in ALSO)]
    paths = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    all_of = {path.relative_to(ROOT).as_posix(): set(openings(ast.parse(path.read_text("utf-8")))) for path in paths}
    return {name: opened for name, opened in all_of.items() if opened}


def test_a_campaign_is_opened_by_the_verified_reader_alone():
    there = found()
    unlisted = [f"{name}: {one}" for name, opened in there.items() for one in sorted(opened - {*LISTED.get(name, ())})]
    stale = [f"{name}: {one}" for name, opened in LISTED.items() for one in opened if one not in there.get(name, ())]
    assert not unlisted and not stale


def test_an_opening_that_goes_past_it_is_found():
    past = """
def page(folder):
    with Campaign.open(folder) as campaign:
        store = TraceStore.open(campaign.traces_url, "c", readonly=True)
    raw = sqlite3.connect(folder / "journal.db")
    text = (folder / "heads.log").read_text()
    with (folder / "seal" / "openings.jsonl").open("rb") as file, open(folder / "x") as other, path.open("wb") as out:
        pass
    return events_of(folder), av.open(str(folder / "video"))
"""
    what = ["Campaign.open", "TraceStore.open", "connect", "read_text", "open", "open", "events_of", "open"]
    assert list(openings(ast.parse(past))) == [f"page: {one}" for one in what]
