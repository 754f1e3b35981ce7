"""The operator console: screens over a running campaign. It owns no state; see `labctl.runtime.attach`."""
