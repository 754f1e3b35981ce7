"""What every key of a cell's file means, in one sentence: by key as it is dotted in TOML.

May not: say a type, a default or what is allowed; the schemas do.
"""

from __future__ import annotations

from collections.abc import Mapping


def below(table: str, keys: Mapping[str, str]) -> dict[str, str]:
    """The meanings of a table's keys, by their dotted names."""
    return {f"{table}.{key}": text for key, text in keys.items()}


VIDEO: Mapping[str, str] = {
    "codec": "Encoder of the pictures, by its name in FFmpeg.",
    "preset": "The encoder's preset: how long it may take to make the file smaller.",
    "crf": "Quality of the pictures: 0 keeps everything, a higher number keeps less.",
    "keyframe_s": "How often a picture is coded by itself, so that a player can begin there; at most 3600.",
}

ROBOT: Mapping[str, str] = {
    "driver": "The robot's driver.",
    "state_hz": "States recorded per second, 0.1 to 10000.",
    "control_hz": "Setpoints handed to the driver per second, 0.1 to 10000.",
    "observe_hz": "Observations published for controllers per second, at least; 0.1 to 10000.",
    "axis": "Limits of an axis that is no joint of the arm: a rail, a vacuum, an axis of the hand, a base's speed.",
    "axis.name": "The axis, as the robot's driver calls it.",
    "axis.kind": "What kind of axis it is; prismatic and twist (a base's speed) are the arm's, any other the hand's.",
    "axis.unit": "The axis's unit: rad, m, 1 for a share of the full vacuum, m/s or rad/s of a twist.",
    "axis.velocity": "Highest speed, in the axis's unit per second; of a twist in its unit, either way.",
    "axis.acceleration": "Highest acceleration; the driver's own without it. A twist needs it.",
    "axis.lower": "Where the axis ends; the driver's own without it. A twist has none.",
    "axis.upper": "Where the axis ends; the driver's own without it.",
    "limits": "What the robot's setpoints never exceed.",
    "limits.velocity_rad_s": "Highest speed of each joint.",
    "limits.acceleration_rad_s2": "Highest acceleration of each joint.",
    "limits.box_min_m": "Lower corner of the box that the tool centre point stays in, robot base frame.",
    "limits.box_max_m": "Upper corner of that box.",
    "limits.tool_speed_m_s": "Highest speed of the tool centre point.",
    "options": "The driver's own options.",
}

TELEOP: Mapping[str, str] = {
    "linear_m_s": "Highest speed that the hand may ask of the tool.",
    "angular_rad_s": "Highest turning speed that the hand may ask of the tool.",
    "joint_rad_s": "Highest speed that the hand may ask of a joint.",
    "deadband": "Share of a full deflection below which the device counts as let go.",
    "stale_s": "Without a reading of the device for this long, the robot holds.",
    "ramp_s": "How slowly a hand's first motion is let in.",
    "align_rad": "How near a leader's joints must stand to the robot's before go.",
    "device": "The device: X of a driver teleop_X, or package.module:function of one's own.",
    "axes": "Which device axis drives x, y, z, rx, ry, rz of the base; - turns one round, 0 is none.",
    "closed_m": "The gripper's opening that the device's closed stands for.",
    "open_m": "The gripper's opening that the device's open stands for.",
    "axis": "How the device leads an axis that is neither a joint nor an opening: a rail, a vacuum, a finger, a base.",
    "axis.name": "The axis, as the robot's driver calls it.",
    "axis.closed": "Of an axis of the hand: where it is when the device closes, in its unit.",
    "axis.open": "Of an axis of the hand: where it is when the device opens.",
    "axis.by": "Of a rail or a base: which axis of the device drives it; - turns it round. The tool rests meanwhile.",
    "axis.speed": "Of a rail: its speed at full deflection, in its unit per second; of a base in its unit.",
    "options": "The device's own options.",
}

CELL: Mapping[str, str] = {
    "cell": "What this cell is. A campaign keeps the whole file as it was at `labctl open`; edits hold for later ones.",
    "cell.name": "The cell's name.",
    "cell.kind": "Whether its episodes are of a real robot; stamped on each, and never mixed in a report.",
    "cell.clock": "Real time in processes of their own, or simulated time in one process (sim and replay only).",
    "cell.operator": "Who stages and scores: people at the console, or a driver for a headless run.",
    "cell.durable": "Whether the journal waits for the disk; false is for simulation only.",
    "robot": "The robot, and the rates of its states, setpoints and observations.",
    **below("robot", ROBOT),
    "second_robot": "A robot beside it, led with it as one device; it has all that [robot] has, and where it stands.",
    "second_robot.name": "What its axes and streams begin with.",
    "second_robot.first_name": "What the axes of the robot of [robot] begin with.",
    "second_robot.base_m": "Where its base stands, in the base frame of the first.",
    "second_robot.base_yaw_rad": "How its base is turned about the vertical there.",
    "second_robot.goes_home": "Which of the two goes home before the other, or both at once.",
    "second_robot.scene": "Whether it works at the fixture's totes as the first has them, or at as many of its own.",
    "second_robot.keep_apart_m": "How near the two tools may come; of elbows and links it says nothing.",
    **below("second_robot", ROBOT),
    "lease": "How long the robot goes on moving when messages of the run process or of a controller fail to come.",
    "lease.duration_s": "The robot stops this long after the run process last renewed the lease.",
    "lease.stale_target_s": "The robot rests this long after the newest target's time.",
    "lease.run_silent_s": "A run process whose loop has not turned for this long renews no lease.",
    "camera": "One camera.",
    "camera.name": "The camera's name, and that of its files.",
    "camera.driver": "The camera's driver.",
    "camera.width": "Width of its pictures in pixels.",
    "camera.height": "Height of its pictures in pixels.",
    "camera.rate_hz": "Pictures per second, 0.1 to 10000.",
    "camera.latency_s": "From light to receipt, as `labctl doctor --latency` measures it.",
    "camera.video": "Settings of [video] that are different for this camera.",
    **below("camera.video", VIDEO),
    "camera.ignore": "Boxes left, top, right, bottom, as shares of the picture, that scenes are not compared in.",
    "camera.tolerance_px": "How far a thing may be off and still count as in its place.",
    "camera.options": "The driver's own options.",
    **below(
        "sensor",
        {
            "name": "The sensor's name; its stream is recorded as sensor/NAME.",
            "driver": "The sensor's driver.",
            "rate_hz": "Values per second.",
            "required": "Whether nothing begins without it and its loss ends an episode; else the loss is a gap.",
            "options": "The driver's own options.",
            "interlock": "A limit of what it measures; while it is exceeded, nothing new begins.",
            "interlock.columns": "The column that counts, or several whose length as a vector does.",
            "interlock.unit": "The unit of the limit; it has to be the one that the sensor records.",
            "interlock.above": "The value may not be above this.",
            "interlock.below": "The value may not be below this.",
            "interlock.for_s": "It may be so for this long; 0: the first such value counts.",
            "interlock.then": "What becomes of a running episode: nothing, an end that is scored, or a void.",
            "witness": "Its steps are candidates for items that came to a tote or went from it.",
            "witness.column": "The column whose steps count.",
            "witness.unit": "The unit of the step; it has to be the one that the sensor records.",
            "witness.step": "The least step; half of what the lightest item weighs.",
            "witness.tote": "The tote that it stands under.",
        },
    ),
    "sensor": "What is measured beside the robot and the cameras: recorded, a reason to stop, a witness.",
    "teleop": "The device that a person drives this cell with, and the most it may ask for.",
    **below("teleop", TELEOP),
    "second_teleop": "The device of the person's other hand, which drives the second robot.",
    **below("second_teleop", TELEOP),
    "video": "How cameras encode.",
    **below("video", VIDEO),
    "storage": "Disk and recording.",
    "storage.min_free_gb": "Less free disk than this is a hold.",
    "storage.chunk_s": "How much of a stream one stored piece holds, which is what a kill may lose.",
    "readiness": "What is asked before anything moves.",
    "readiness.ask_arms": "Whether every arm must load, and answer where it has a card, before a run moves.",
    "readiness.like_voids": "Episodes in a row void for one machine's reason, or one end before go, that hold; 0 none.",
}
