"""A policy from outside, for tests: keys and requests, its server as a process, kills of the queue."""
