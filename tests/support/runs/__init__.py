"""Campaigns and run nodes, simulated, live or written by hand."""
