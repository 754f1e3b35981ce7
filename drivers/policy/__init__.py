"""Policies, behind a server or as a function: controllers by a policy card."""
