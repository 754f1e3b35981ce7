"""The names of the documents that --json prints, and the schema of each, made of its type.

May not: import a type before its schema is asked for.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping

from labctl.cli.contract.shapes import schema_of
from labctl.config.reference import Schema

FORMS = "labctl.cli.contract.forms"
MORE = "labctl.cli.contract.more_forms"
KEEPING = "labctl.cli.contract.keeping_forms"
JOINT = "labctl.cli.contract.joint_forms"
QUEUE = "labctl.cli.contract.queue_forms"
OUTSIDE = "labctl.cli.contract.published_forms"

# name and number -> where its type is; a document's `schema` is "labctl.NAME/NUMBER"
DOCUMENTS: Mapping[str, str] = {
    "alerts/1": f"{MORE}:AlertsTried",
    "analysis/1": "labctl.analysis.survival.result:AnalysisResult",
    "backup/1": f"{KEEPING}:BackupTaken",
    "backup_check/1": f"{KEEPING}:BackupsRead",
    "backups/1": f"{KEEPING}:Backups",
    "lab_moved/1": f"{KEEPING}:LabMoved",
    "bugreport/1": f"{FORMS}:Bugreport",
    "compare/1": f"{MORE}:Compared",
    "database/1": "labctl.cli.contract.server_forms:Database",
    "demo/1": f"{FORMS}:DemoMade",
    "doctor/1": f"{MORE}:Doctor",
    "dry_run/1": f"{QUEUE}:DryRunDone",
    "emulator/1": f"{FORMS}:Emulated",
    "episodes/1": "labctl.analysis.episodes_table.result:EpisodesResult",
    "error/1": f"{FORMS}:Failed",
    "experiment/1": f"{MORE}:ExperimentMade",
    "export/1": f"{FORMS}:Exported",
    "import/1": f"{FORMS}:ImportMade",
    "joint_act/1": f"{JOINT}:JointActed",
    "joint_opened/1": f"{JOINT}:JointMade",
    "joint_published/1": f"{OUTSIDE}:JointPublished",
    "joint_serving/1": f"{JOINT}:JointServing",
    "joint_status/1": f"{JOINT}:JointStatus",
    "joint_verification/1": f"{JOINT}:JointVerified",
    "key_made/1": f"{QUEUE}:KeyMade",
    "keyframe_questions/1": "labctl.checks.keyframe_questions:Asked",
    "kit_made/1": f"{MORE}:KitMade",
    "lab_made/1": f"{FORMS}:NewLab",
    "latency/1": f"{MORE}:Latency",
    "look/1": f"{FORMS}:Look",
    "media/1": "labctl.cli.contract.media_forms:Media",
    "opened/1": f"{FORMS}:Opened",
    "page/1": f"{FORMS}:PageMade",
    "people/1": f"{FORMS}:People",
    "person_code/1": f"{FORMS}:CodeSet",
    "phase/1": f"{FORMS}:Phase",
    "plan/2": f"{MORE}:Plan",
    "power/1": f"{MORE}:Power",
    "practice/1": f"{FORMS}:PracticeKept",
    "published_made/1": f"{OUTSIDE}:PublishedMade",
    "qualifications/1": f"{MORE}:Qualifications",
    "qualify/1": f"{MORE}:Qualified",
    "queue/1": "labctl.queue.shown:Shown",
    "queue_act/1": f"{QUEUE}:QueueAct",
    "queue_key/1": f"{QUEUE}:QueueKey",
    "queue_verify/1": f"{QUEUE}:QueueVerified",
    "rates/1": f"{MORE}:Rates",
    "recorded/1": f"{FORMS}:Recorded",
    "report_again/1": f"{OUTSIDE}:ReportAgain",
    "report_made/1": f"{FORMS}:ReportMade",
    "report_published_joint/1": f"{OUTSIDE}:ReportPublishedJoint",
    "request_made/1": f"{QUEUE}:RequestMade",
    "restored/1": f"{KEEPING}:LabRestored",
    "review/1": f"{FORMS}:Review",
    "run/1": f"{FORMS}:Ran",
    "said/1": f"{FORMS}:Lines",
    "scene/1": f"{FORMS}:SceneMade",
    "site_made/1": f"{OUTSIDE}:SiteMade",
    "static/1": f"{MORE}:Static",
    "status/2": f"{FORMS}:Status",
    "submission/1": f"{QUEUE}:SubmissionRead",
    "teleop/1": f"{FORMS}:DriveEnded",
    "verify/1": f"{FORMS}:Verified",
    "verify_published/1": f"{OUTSIDE}:VerifiedPublished",
    "verify_published_joint/1": f"{OUTSIDE}:VerifiedPublishedJoint",
}
NAMES = tuple(name.partition("/")[0] for name in DOCUMENTS)
OPEN = ("export/1", "rates/1")  # documents with keys that no type can name: a format's, a table's columns
BARE = ("rates/1",)  # a list, which has no place for its name


def schema_of_document(name: str, *, closed: bool = False) -> Schema:
    """The JSON Schema of a document, by its name, with its number or without. closed: see `shapes.schema_of`."""
    full = next(known for known in DOCUMENTS if name in (known, known.partition("/")[0]))
    module, _, attribute = DOCUMENTS[full].partition(":")
    made = schema_of(getattr(importlib.import_module(module), attribute), closed=closed and full not in OPEN)
    title = {"title": f"labctl.{full}"}
    named = {} if full in BARE else {"properties": {"schema": {"const": title["title"]}}}
    return {"$schema": made.pop("$schema"), **title, **named, **made}


def document_text(name: str) -> str:
    """The same as the text of a file."""
    return json.dumps(schema_of_document(name), indent=2, ensure_ascii=False) + "\n"
