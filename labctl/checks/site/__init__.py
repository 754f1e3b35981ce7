"""What a second site shows before its results count: a kit of objects, and checks of cell, person and assessors."""
