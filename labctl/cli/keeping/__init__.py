"""Verbs that keep a lab safe."""
