"""How many trials a question needs, by formula or by simulation."""
