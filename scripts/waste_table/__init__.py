"""What each policy wastes on the standard workloads: measured row by row, kept in a file, shown as tables."""
