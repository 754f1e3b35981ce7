"""labctl: blinded, paired robot trials, recorded and reported."""

__version__ = "0.1.0"
