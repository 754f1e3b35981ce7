"""RealSense cameras."""
