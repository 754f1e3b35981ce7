"""Further targets: what strangers made, what devices and servers say, what lies in records and is posted.

May not: be kind, as `targets`.
"""

from __future__ import annotations

from labctl.errors import LabctlError
from support.fuzzing import further as f
from support.fuzzing import kept as k
from support.fuzzing import told as t
from support.fuzzing.target import Target


def of_strangers() -> dict[str, Target]:
    device = (LabctlError,)
    return {
        "journal file": Target(f._journals, f._journal),
        "traces file": Target(f._traces, f._trace),
        "manifest": Target(lambda: [(f.PUBLISHED / "published.json").read_bytes()], f._manifest, refused=True),
        "archive": Target(f._archives, f._archive),
        "rtde client": Target(f._rtde, f._rtde_server, ()),
        "hand client": Target(f._hand_requests, f._hand, ()),
        "rtu client": Target(f._frames, f._rtu, ()),
        "gripper client": Target(
            lambda: [b"GET POS", b"SET ACT 1 GTO 1", b"SET POS 255 SPE 3"],
            f.gripper_client,
            (),
        ),
        "gripper": Target(
            lambda: [b"ACT 1\nSTA 3\nOBJ 3\nFLT 0\nPOS 12\n", b"ACT 1\nSTA 3\nOBJ ?\nFLT 0\nPOS 12\n"],
            f._gripper_answers,
            device,
        ),
        "policy answer": Target(f._policy_answers, f._policy),
        "sensor lines": Target(
            lambda: [b"1.25 -3e-2", b"OVER 0.1", b"+.5,7"],
            f.sensor_line,
            (),
        ),
        "ros 2 message": Target(f._samples_of_messages, f._cdr, ()),
        "alert's answer": Target(lambda: list(f.HTTP), f._alert),
    }


def of_devices() -> dict[str, Target]:
    return {
        "policy server's greeting": Target(t.greetings, t.greeting),
        "gr00t server's description": Target(t.descriptions, t.description, refused=True),
        "bridge's question": Target(t.greetings, t.bridge, ()),
        "ros 2 picture": Target(t.pictures, t.picture),
        "spacemouse": Target(lambda: [bytes([1, *range(6)]), bytes([2, *range(12)])], t.pucks, ()),
        "fr3 state": Target(t.states, t.state, ()),
        "fci client": Target(t.fci_requests, t.fci, ()),
        "dashboard client": Target(lambda: [b"power on\n", b"load a.urp", b"robotmode"], t.dashboard, ()),
        "robot api client": Target(t.api_requests, t.api_request, ()),
        "control port's client": Target(t.control_requests, t.control_request, ()),
        "control port's answer": Target(lambda: [b'{"ok": true, "events": []}\n'], t.control_answer),
        "ur version": Target(t.versions, t.controller_version, ()),
        "robot api's answer": Target(lambda: list(t.ANSWERS), t.robot_api, ()),
        "planner's answer": Target(lambda: list(t.ANSWERS[-1:]), t.planner),
        "authority's answer": Target(lambda: list(t.ANSWERS[:4]), t.authority),
        "collector's answer": Target(lambda: list(t.ANSWERS[:4]), t.collector),
    }


def of_records() -> dict[str, Target]:
    seal = k.RECORD / "seal"
    return {
        "site kit": Target(lambda: [k.TEMPLATE.encode()], k.kit),
        "site's objects": Target(lambda: [k.OBJECTS], k.objects),
        "assessor's labels": Target(lambda: [k.LABELS], k.labels),
        "counts": Target(lambda: [b"axis,successes,trials\nV-SC,3,10\nbase,7,10\n"], k.counts),
        "parquet": Target(k.parquets, k.parquet),
        "seal's schedule": Target(lambda: [(seal / "schedule.json").read_bytes()], k.schedule),
        "seal's openings": Target(lambda: [(seal / "openings.jsonl").read_bytes()[:20_000]], k.openings),
        "seal's reveals": Target(lambda: [b'{"arm": "a", "trial": "t-abc"}\n' * 2], k.reveals),
        "seal's cards": Target(lambda: [b'{"card.toml": "a = 1"}'], k.cards),
        "seal's protocol": Target(lambda: [(seal / "protocol.toml").read_bytes()], k.frozen),
        "journal's bodies": Target(k.histories, k.history),
        "list of opened campaigns": Target(k.opened_lists, k.opened),
        "lab's mark": Target(
            lambda: [b'{"to": "/a", "heads": {}}', b'timezone = "Europe/Oslo"\n'], k.moved, refused=True
        ),
        "run's contact": Target(
            lambda: [b'{"pid": 1, "began": "a 1", "sockets": "/tmp/s"}', b'{"pid": 12}'], k.contact, ()
        ),
        "small json": Target(lambda: [b'{"a": "00ff"}', b'{"analytics_enabled": "00"}'], k.beside),
        "video": Target(k.videos, k.video),
        "picture": Target(k.pictures, k.picture),
        "recording to replay": Target(k.recordings, k.recording),
        "timestamp": Target(lambda: [bytes.fromhex("30053003020100")], k.stamp, refused=True),
        "clock page": Target(
            lambda: [b'{"load": "a", "before": {"sent": 1.5, "host_ns": 2, "received": 3.5}, "shown": [[1, 2.5]]}'],
            k.clock_page,
            (),
        ),
        "assessor's page": Target(
            lambda: [k.POSTED],
            k.judged,
            (LabctlError, ValueError, RecursionError),
        ),
        "command": Target(
            lambda: [
                b'{"verb": "score", "who": "p1", "role": "operator", "id": "a", "version": 3, "args": {"moved": 2}}'
            ],
            k.ordered,
            (LabctlError, ValueError, RecursionError),
        ),
        "command line": Target(
            lambda: [b"10,20,40", b"5:" + b"ab" * 32, b"17/20,3/4", b"m=http://h:1/v1"], k.typed, ()
        ),
    }
