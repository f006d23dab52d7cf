"""`drainwise doctor`: what this machine is, what is installed, rendered and running here, and what to do next."""

from drainwise.cli.doctor.command import add_parser, run

__all__ = ["add_parser", "run"]
