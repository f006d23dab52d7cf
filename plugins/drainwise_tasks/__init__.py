"""What tasks need, told to those who submit them: learned from finished payloads, or measured before (JEDI, McM)."""
