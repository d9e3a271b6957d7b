"""The subcommands of `manage.py ipam`, one module each, discovered by module name.

A module has `HELP` (one line), `add_arguments(parser)` and `run(options, out) -> int`, which returns
an exit status of pools.management.output.
"""
