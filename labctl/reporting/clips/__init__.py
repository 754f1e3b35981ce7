"""Which moments of a campaign a report shows moving, and the cutting of them."""
