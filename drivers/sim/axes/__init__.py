"""Simulated robots that are more than joints and two fingers: one on a rail with a vacuum cup, one with a hand."""
