"""franka-sim as a robot that enforces limits: run by the Python of its own environment, `python FILE HOST RECORD`.

It wants a model of the arm that it would fetch; one is made here of the description that it brings. RECORD is written:
each command it takes, each cycle for which none came, and what it finds broken, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import franka_sim
import mujoco

# Of every joint, as in the model that franka-sim would fetch and whose gains it has (mujoco_menagerie,
# franka_fr3_v2/fr3v2.xml). It computes its servo once a millisecond, and 450 N m s/rad on the joints of a model with
# less inertia is unstable: at 0.1 kg m2 an error grew 2.4-fold with each step until the torques' bounds held it, and
# the robot trembled at rest for ever.
PRIORITY = 10  # ahead of the programs of this machine that may not be late, franky's loop (6) too
MOTOR_KG_M2, DAMPING, FRICTION_N_M = 0.195, 0.003, 0.2


def model() -> str:
    """The path of an MJCF of its own URDF, without the meshes."""
    text = next(Path(franka_sim.__file__).parent.rglob("fr3.urdf")).read_text()
    for part in ("visual", "collision"):
        text = re.sub(rf"<{part}\b.*?</{part}>", "", text, flags=re.DOTALL)
    text = re.sub(r'"((?:link|joint)[0-7])"', r'"fr3_\1"', text)
    spec = mujoco.MjSpec.from_string(text)
    for joint in spec.joints:
        joint.armature, joint.damping, joint.frictionloss = MOTOR_KG_M2, DAMPING, FRICTION_N_M
    spec.compile()
    path = Path(tempfile.mkdtemp()) / "fr3.xml"
    path.write_text(spec.to_xml())
    return str(path)


os.environ["FR3_MJCF"] = model()
from franka_sim.franka_sim_server import FrankaSimServer  # noqa: E402  it reads the variable
from franka_sim.limits.checker import MotionLimitChecker  # noqa: E402


class Recorded(MotionLimitChecker):
    """Its own judge of what is commanded, which writes down what it is given."""

    def start_motion(self, *given, **named):
        record.write("{}\n")
        return super().start_motion(*given, **named)

    def absorb_command(self, command, *given, fresh, **named):
        found = super().absorb_command(command, *given, fresh=fresh, **named)
        speeds = {"dq": list(command["dq_c"]), "twist": list(command["O_dP_EE_c"])}
        bad = found.violation.describe() if found.violation else ""
        record.write(json.dumps({"id": command["message_id"], "late": not fresh, **speeds, "bad": bad}) + "\n")
        return found

    def extrapolate(self, message_id):
        record.write(json.dumps({"lost": message_id}) + "\n")
        return super().extrapolate(message_id)


for module in [module for name, module in sys.modules.items() if name.startswith("franka_sim")]:
    if getattr(module, "MotionLimitChecker", None) is MotionLimitChecker:
        module.MotionLimitChecker = Recorded

with contextlib.suppress(PermissionError):  # a real controller has a computer of its own
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    if len(cores := sorted(os.sched_getaffinity(0))) > 1:
        os.sched_setaffinity(0, cores[:-1])  # the driver's threads keep to the last one

with Path(sys.argv[2]).open("w", buffering=1) as record:
    FrankaSimServer(
        host=sys.argv[1],
        enable_vis=False,
        physics="mujoco",
        gripper_object_width=0.03,
        enforce_motion_limits=True,
        enforce_comm_constraints=True,
    ).start()
