"""What a person sees, read back: terminal, browser, viewer, exports."""
