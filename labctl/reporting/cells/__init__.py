"""One report of several cells' folders."""
