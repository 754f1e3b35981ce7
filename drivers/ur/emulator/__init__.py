"""An emulated Universal Robots controller that ur_rtde connects to, on loopback. It proves nothing about hardware."""
