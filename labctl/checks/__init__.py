"""What is tried before anything counts: this machine, its devices, its policies, the size of a protocol."""
