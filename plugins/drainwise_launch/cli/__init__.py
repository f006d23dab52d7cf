"""The command `launch`: one thin module per command. Nothing imports this package."""
