"""Packaged cells to begin from: robots and cameras as TOML. `labctl.config.cell_schema` parses them."""
