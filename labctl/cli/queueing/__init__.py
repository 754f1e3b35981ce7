"""`labctl queue` and `labctl submit`: who waits for a shared rig, and the way in for people outside."""
