"""An emulated FR3 that libfranka's clients connect to, on loopback. It proves nothing about hardware."""
