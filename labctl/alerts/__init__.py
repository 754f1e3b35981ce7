"""Tells people who are not at the cell what happened there: what is worth an alert, and by which way it is sent."""
