"""What leaves for people outside: a published folder, and a site of several."""
