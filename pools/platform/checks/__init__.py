"""Proofs of the register's invariants on a live register, and the repair of what is safe to repair.

`checks` says what a check is; each other module has some of them; `registry` knows all; `runs` runs
them, bounded in time, and keeps what they found.
"""
