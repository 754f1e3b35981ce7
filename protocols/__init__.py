"""Packaged protocols: experiments as TOML. `labctl.config.conditions` parses them."""
