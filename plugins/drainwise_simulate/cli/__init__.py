"""The command line of this package: one thin module per command. Nothing imports this package."""
