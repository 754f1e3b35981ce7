"""What there is to see of a campaign and of one episode, as plain values."""
