"""Grid Engine: its commands, their answers, and the launcher's jobs in its queues. Measured with 8.1.9."""
