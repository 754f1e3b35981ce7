"""What people look at: the operator's console, the assessor's review, and views of episodes in Rerun."""
