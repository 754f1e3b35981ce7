"""Universal Robots UR5 and UR5e."""
