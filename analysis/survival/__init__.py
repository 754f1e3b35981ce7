"""Time-to-success: curves, tests, intervals and their simulation kernels, and the comparison of arms."""
