"""Process trees: who is who, what belongs together, how it is started, counted and ended, wherever it hid."""
