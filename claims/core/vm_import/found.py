"""What a file says of one network interface of one VM, before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass

from pools.core import errors


@dataclass(frozen=True, slots=True)
class Found:
    """One network interface of one VM, in the words of the source.

    `mac` and `ips` are texts that may be bad, addresses with a prefix length where the source has
    one; `problems` are those of reading (values set aside, mangled cells), also where the rest is
    usable. `refused`: nothing can be made of it.
    """

    row: int  # line of a CSV or sheet (1 is the header), or position in a list, from 1
    vm: str
    mac: str
    ips: tuple[str, ...]
    port_group: str = ""  # as the source calls its network
    namespace: str = ""
    sheet: str = ""
    note: str = ""
    problems: tuple[errors.Problem, ...] = ()
    refused: bool = False
