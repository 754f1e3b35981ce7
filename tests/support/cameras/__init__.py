"""Cameras without hardware, and pictures that say which they are."""
