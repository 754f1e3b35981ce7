"""Several cells under one seal: the seal host that reveals one trial at a time, and what a cell asks of it."""
