"""Print statement files as PREPARE, for psql: `python -m pools.sql.statements claims/vm_status`."""

import sys

from pools.sql import statements

for path in sys.argv[1:]:
    sys.stdout.write(statements.parse(path).prepare(path.rpartition("/")[2]))
