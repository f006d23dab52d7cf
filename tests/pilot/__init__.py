"""Tests of the reference pilot; a package, because other rooms have tests of the same names."""
