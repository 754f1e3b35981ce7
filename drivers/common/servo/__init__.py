"""A robot led by setpoints: limited, queued, given to a vendor's link by a thread of its own, and its way home."""
