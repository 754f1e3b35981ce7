"""The episodes table: one row an episode of any task; its reader, its statistics, and other people's results as one."""
