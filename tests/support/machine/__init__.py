"""Processes, installed packages, and what this machine did meanwhile."""
