"""Universal Robots' arms: the CB3 UR5 and the e-Series."""
