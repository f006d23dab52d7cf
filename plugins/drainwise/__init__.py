"""drainwise: pilots live long and still give their cores back quickly and cheaply."""

__version__ = "0.1.0"
