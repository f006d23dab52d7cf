"""What a process that stays tells the service manager."""
