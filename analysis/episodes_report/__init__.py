"""The report of an episodes table: its first page, a section for each thing its columns tell, and every figure."""
