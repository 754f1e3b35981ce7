"""Statistics, figures and report over a flat operations table. A leaf: imports nothing of labctl outside itself."""
