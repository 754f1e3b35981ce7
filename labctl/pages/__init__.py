"""Pages in a browser: what they hold, the videos on them, and the one small server that hands them out on loopback.

May not: write into a campaign (who serves a page gives it the functions that do), or show what a blind role may not
see.
"""
