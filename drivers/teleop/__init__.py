"""A person at a device as a controller, and the devices."""
