"""Controllers of robots on loopback that the vendors' own clients connect to. They prove nothing about hardware."""
