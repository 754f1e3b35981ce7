"""A media store of a test's own, and campaigns to put there."""
