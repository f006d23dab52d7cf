"""The rule of a need that stays open: what comes by itself, what a pilot may cost now, what replaces an order."""
