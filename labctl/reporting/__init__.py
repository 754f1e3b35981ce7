"""From a journal to the operations table, the facts of a report, and the report folder."""
