"""Machines of Debian releases with Python and nothing else, without a network: to install there as a site does."""

from clean_machine.installed import InstalledMachine
from clean_machine.machine import CleanMachine
from clean_machine.other_python import give_python
from clean_machine.recipe import RELEASES
from clean_machine.wheels import wheels_for

__all__ = ["RELEASES", "CleanMachine", "InstalledMachine", "give_python", "wheels_for"]
