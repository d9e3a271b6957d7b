"""How fast the register is, always beside a floor of the same run on the same server.

`python -m benchmarks [NAME ...]` starts a site of its own (`manage.py up` with its own settings),
runs the named benchmarks (all without names) and prints one JSON line for each: rate, floor, ratio,
and the goal where there is one.
"""
