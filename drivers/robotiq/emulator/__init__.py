"""An emulated 2F-85 on both of its lines. It proves nothing about hardware."""
