"""What a caller asks the allocator for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pools.core import addresses

MOST = 10_000  # blocks in one request
ENV = "env"  # the kind of holder that is an environment: its id is unique within its org only


class Holder(NamedTuple):  # a batch makes ten thousand, which costs a dataclass five times as much
    """Who holds a block; `uid` tells apart two objects that had the same name one after another."""

    kind: str
    id: str
    uid: str = ""


@dataclass(frozen=True)
class BlockDemand:
    """What is asked for: `count` blocks of each family for each holder, or the block `cidr`.

    No `families` means every family of the pool.
    """

    holders: tuple[Holder, ...]
    families: tuple[int, ...] = ()
    count: int = 1
    org: str = ""
    env: str = ""
    cidr: addresses.Network | None = None

    @property
    def environment(self) -> str:
        """The one environment that is served, "" when there are several or none."""
        served = self.environments
        return served[0] if len(served) == 1 else ""

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments that are served."""
        if self.env:
            return (self.env,)
        return tuple(sorted({env for env in map(self.env_of, self.holders) if env}))

    def env_of(self, holder: Holder) -> str:
        """The environment that a holder's block serves; an `env` holder is one itself."""
        return self.env or (holder.id if holder.kind == ENV else "")
