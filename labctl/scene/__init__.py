"""How a staged scene compares with its reference: what the camera did, and what in the scene changed."""
