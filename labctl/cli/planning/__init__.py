"""What an experiment takes before it is run: a protocol checked, its hours, and how many trials a question needs."""
