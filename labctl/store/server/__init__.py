"""The lab's PostgreSQL server: a verified, append-only copy of journals and traces (docs/decisions/0047)."""
