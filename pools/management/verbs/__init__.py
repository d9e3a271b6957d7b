"""The subcommands of `manage.py ipam`: each module has its `VERBS` by name."""
