"""Scripts that run in somebody else's environment and serve a policy from there. Not imported by labctl."""
