"""The packages of drainwise for Debian and Enterprise Linux, from one staged tree each."""
