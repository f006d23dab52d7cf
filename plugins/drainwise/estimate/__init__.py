"""Where good-faith estimates come from: what finished payloads took, learned as PanDA's JEDI learns from its scouts."""
