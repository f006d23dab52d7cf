"""The command `simulate`: one thin module per command. Nothing imports this package."""
