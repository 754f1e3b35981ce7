"""A queue for a shared rig: who waits for it, what fits into which shift, and the way in for people outside."""
