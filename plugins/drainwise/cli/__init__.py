"""The command line: one thin module per command. Nothing imports this package."""
