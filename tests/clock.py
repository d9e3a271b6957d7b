"""The database's clock at this very moment.

`database.now()` is when the transaction began, which is before the whole test: on a slow machine seconds
before what is measured.
"""

from datetime import datetime

from pools.platform import database


def moment() -> datetime:
    answer: datetime = database.call("SELECT ipam_clock()", [])
    return answer
