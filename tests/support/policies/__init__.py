"""Policies that answer, servers of them, and what they are given."""
