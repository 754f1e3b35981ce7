"""Joint campaigns: labs, and a relay between them."""
