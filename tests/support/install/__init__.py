"""labctl as others install it: the core alone, the oldest versions."""
