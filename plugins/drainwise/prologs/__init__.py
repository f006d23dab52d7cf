"""What LSF, PBS, Grid Engine and Flux say of a job that starts: in its environment, and asked by their commands.

Each has one module: `questions` are the commands, `described` makes facts of what they print. Both are pure. A
fact that cannot be read is left out.
"""
