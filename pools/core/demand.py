"""The request of a caller to the allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pools.core import addresses

MOST = 10_000  # blocks in one request
ENV = "env"  # the kind of holder that is an environment: its id is unique within its org only


class Holder(NamedTuple):  # a batch creates ten thousand; a dataclass takes five times as long
    """The holder of a block; `uid` distinguishes successive objects of the same name."""

    kind: str
    id: str
    uid: str = ""


@dataclass(frozen=True)
class BlockDemand:
    """A request for `count` blocks of each family for each holder, or for the block `cidr`.

    Empty `families` means every family of the pool. With `reuse`, blocks that a holder holds in the pool count:
    only what it lacks is allocated, so that the request can be repeated at any time.
    """

    holders: tuple[Holder, ...]
    families: tuple[int, ...] = ()
    count: int = 1
    org: str = ""
    env: str = ""
    cidr: addresses.Network | None = None
    reuse: bool = False

    @property
    def environment(self) -> str:
        """The environment of all blocks; "" if there are several or none."""
        served = self.environments
        return served[0] if len(served) == 1 else ""

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments of the blocks, sorted."""
        if self.env:
            return (self.env,)
        return tuple(sorted({env for env in map(self.env_of, self.holders) if env}))

    def env_of(self, holder: Holder) -> str:
        """Return the environment of a holder's block; an `env` holder is itself the environment."""
        return self.env or (holder.id if holder.kind == ENV else "")
