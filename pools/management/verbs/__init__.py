"""The verbs of `manage.py ipam`: one module each, found by its name.

A module has `HELP` (one line), `add_arguments(parser)` and `run(options, out) -> int`, the exit status:
one of pools.management.output.
"""
