"""What `scripts/bench` measures, an idea per module."""
