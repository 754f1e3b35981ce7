"""What drivers share: kinematics, limits, the simulated arm and its world. Imports no driver."""
