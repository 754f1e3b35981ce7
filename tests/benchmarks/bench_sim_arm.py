"""What a simulated arm and its controller cost per 30 simulated seconds.

Setpoints are recorded once, then replayed and timed.
"""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import pytest
from support.robots.cells import FIXTURE, cell_named

from labctl.devices import Observation, load

RIG = runpy.run_path(str(Path(__file__).parents[1] / "unit" / "drivers" / "rig.py"))


@pytest.mark.benchmark
@pytest.mark.parametrize("arm", ["fr3", "ur5"])
@pytest.mark.parametrize("who", ["person", "steady"])
def test_cost_of_thirty_simulated_seconds(arm: str, who: str):
    given = {"cell": cell_named(f"sim_{arm}"), "fixture": FIXTURE}
    robot = load(f"sim_{arm}", {}, **given)
    controller = (
        load("sim_person", {}, **given)
        if who == "person"
        else load("sim_policy", {"skill": who, "latency_s": 0.1}, **given)
    )
    run = RIG["episode"](robot, controller, seed=5, keep=True)
    seconds = run.end_s
    best = {"follow": 9.0, "observe": 9.0, "events": 9.0, "drain": 9.0, "infer": 9.0, "to_joints": 9.0}
    for _ in range(5):
        spent = dict.fromkeys(best, 0.0)
        robot.stage({"object": "batteries", "layout": "layout-1", "items": 4}, 5, 0)
        robot.observe()
        for i, wanted in enumerate(run.wanted):
            marks = [time.process_time()]
            robot.follow(wanted)
            marks.append(time.process_time())
            robot.observe()
            marks.append(time.process_time())
            robot.events()
            marks.append(time.process_time())
            if i % 10 == 9:
                robot.drain(int(wanted.t_ns[-1]))
            marks.append(time.process_time())
            for j, name in enumerate(("follow", "observe", "events", "drain")):
                spent[name] += marks[j + 1] - marks[j]
        controller.reset(6)
        for t_ns, seen in run.asked:
            marks = [time.process_time()]
            chunk = controller.infer(Observation(t_ns, seen))
            marks.append(time.process_time())
            robot.to_joints(chunk.values, seen["q"])
            marks.append(time.process_time())
            spent["infer"] += marks[1] - marks[0]
            spent["to_joints"] += marks[2] - marks[1]
        best = {name: min(best[name], spent[name] / seconds * 30) for name in best}
    parts = ", ".join(f"{name} {1e3 * value:.1f}" for name, value in best.items())
    print(f"\nsim_{arm} {who}: {1e3 * sum(best.values()):.1f} ms per 30 simulated s ({parts}), of {seconds:.0f} s")
