"""Which robot a cell has, through whatever wraps its driver."""

import pytest

from labctl.viewing.episode import robot_model


@pytest.mark.parametrize(
    ("driver", "options", "model"),
    [
        ("sim_fr3", {}, "fr3"),
        ("sim_ur5", {}, "ur5"),
        ("franka", {"host": "172.16.0.2"}, "fr3"),
        ("ur5", {"model": "ur5e"}, "ur5e"),
        ("ur5", {"host": "10.0.0.2"}, "ur5e"),  # what drivers/ur/options.py takes where nothing is said
        ("ur5", {"host": "10.0.0.2", "model": "ur5"}, "ur5"),
        ("emulated", {"driver": "ur5", "driver_options": {"model": "ur5e"}}, "ur5e"),
        ("faults", {"driver": "emulated", "driver_options": {"driver": "franka"}}, "fr3"),
        ("replay", {"arm": "ur5"}, "ur5"),
        ("replay", {"file": "x.npz"}, "fr3"),
        ("their_robot:build", {"model": "ur10"}, "ur10"),  # a driver that is not here any more
    ],
)
def test_the_model_is_found(driver, options, model):
    assert robot_model(driver, options) == model
