"""Estimates in good faith: what finished payloads took, learned as PanDA's JEDI learns from its scouts."""
