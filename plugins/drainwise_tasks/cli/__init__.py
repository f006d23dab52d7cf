"""The commands `estimate` and `validate`: one thin module per command. Nothing imports this package."""
