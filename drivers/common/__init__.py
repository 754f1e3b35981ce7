"""What drivers share: kinematics, limits, options, states, cameras and grippers. Imports no driver."""
