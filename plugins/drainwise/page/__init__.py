"""The parts of a page or a plot that needs nothing else: one look for all of them."""
