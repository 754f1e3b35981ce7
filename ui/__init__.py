"""What people look at: Rerun views now, the operator console later."""
