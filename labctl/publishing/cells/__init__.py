"""Publications of one campaign in several cells: the seal host's record, the parts together, their one report."""
