"""Robotiq 2F-85 on a socket or a serial line."""
