"""What all commands share before and after they run: their table, the parser, the output, faults as one line."""
