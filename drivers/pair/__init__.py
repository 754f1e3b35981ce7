"""Two robots in one cell, led as one device."""
