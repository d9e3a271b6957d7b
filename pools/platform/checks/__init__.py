"""Checks of the register's invariants while it is in use, and repairs that are safe to do.

`checks` defines what a check is, the other modules and the rooms define the checks, `registry` lists them,
and `runs` executes them within a time limit and stores the results.
"""
