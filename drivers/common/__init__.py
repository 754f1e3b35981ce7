"""What drivers share: kinematics, limits, the simulated robot and its world. Imports no driver."""
