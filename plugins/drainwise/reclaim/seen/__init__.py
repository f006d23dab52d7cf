"""What follows from the payloads that nodes see: when they should end, and which pilots are stuck. Pure."""
