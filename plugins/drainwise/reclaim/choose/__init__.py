"""Choose which pilots give what back: one decision over rows, needs, places and limits, as arrays; pure."""
