"""How tests are run here, whatever they test: plugins of pytest, each loaded by tests/conftest.py.

May not: know labctl.
"""
