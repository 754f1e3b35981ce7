"""Backups of a lab: snapshots in a folder that has each file's bytes once, and a lab made from one, with proof."""
