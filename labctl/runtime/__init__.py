"""The run process and what it is made of: from start-up to the sequence of an episode, its commands, and the
processes beside it.
"""
