"""`manage.py up`: PostgreSQL, Redis, web, worker and beat as children of one process.

Guarantees, each with a test in tests/edges/test_up*.py: a dead child is restarted; SIGTERM and Ctrl-C
stop all processes within 10 s; kill -9 of the supervisor leaves no process and loses no committed
row; two supervisors never share a data folder.
"""
