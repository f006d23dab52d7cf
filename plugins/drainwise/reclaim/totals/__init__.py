"""Find pilots that make an exact total of cores, and which totals they can make."""
