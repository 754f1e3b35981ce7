"""Parsers under input that nobody meant: what each takes, how a good input is spoilt, and what was found so far."""
