"""USB and network cameras, and video files, by OpenCV."""
