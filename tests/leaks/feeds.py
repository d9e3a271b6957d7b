"""Who holds addresses: what tooling reports of it, and what CiliumNodes say."""

from typing import Any

from pools.core.block_fields import BlockAnswer
from pools.models import Block, Leak, SyncRun
from pools.register.allocator import allocation
from pools.register.leaks import detection
from tests import factories
from tests.edges.api import Api
from tests.handlers.node_world import World
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock


class Suspects:
    """Who is told to have leaked."""

    def leaked(self) -> list[str]:
        return sorted(detection.confirmed_leaks().values_list("holder_id", flat=True))

    def suspected(self) -> list[str]:
        return sorted(detection.suspected_leaks().values_list("holder_id", flat=True))


class Feed(Suspects):
    """Instances of one cluster that hold addresses, and who of them is reported."""

    def __init__(self, clock: Clock, kind: str = "instance") -> None:
        self.clock = clock
        self.kind = kind
        self.cluster = factories.cluster()
        self.pool = factories.pool("10.9.0.0/24", within=self.cluster, cooldown=3600)
        self.api = Api()
        self.sequence = 0

    def holds(self, name: str, uid: str = "", **more: Any) -> BlockAnswer:
        return factories.take(self.pool, allocation.Holder(self.kind, name, uid), **more)

    def send(self, *holders: Any, complete: bool = True, **more: Any) -> Any:
        """A report with the next number; a name alone is a holder without uid."""
        self.sequence = more.pop("sequence", self.sequence + 1)
        references = [{"id": holder} if isinstance(holder, str) else holder for holder in holders]
        body = {
            "cluster": self.cluster.name, "holder_kind": self.kind, "sequence": self.sequence,
            "complete": complete, "holders": references,
        }  # fmt: skip
        return self.api("POST", "references/", body | more)

    def report(self, *holders: Any, **more: Any) -> dict[str, Any]:
        answer = self.send(*holders, **more)
        assert answer.status_code == 200, answer.content
        document: dict[str, Any] = answer.json()
        return document

    def twice(self, *holders: Any, apart: float = 900) -> None:
        """Two complete reports, at least the grace apart."""
        self.report(*holders)
        self.clock.advance(apart)
        self.report(*holders)

    def reclaim(self, block: BlockAnswer, **more: Any) -> Any:
        """As the REST API takes it."""
        body = {"holder": block["holder"], "reason": "gone"}
        if not body["holder"].get("uid"):
            body["holder"] = {"kind": block["holder"]["kind"], "id": block["holder"]["id"]}
        return self.api("POST", f"blocks/{block['id']}/reclaim/", body | more)


class Nodes(Suspects, World):
    """A cluster whose CiliumNodes are observed, and blocks of nodes that it may not have."""

    def __init__(self, fake: FakeCluster, clock: Clock) -> None:
        super().__init__(fake)
        self.clock = clock
        self.of_pods = self.pool("a", "10.0.0.0/16", cooldown=0)

    def holds(self, name: str, uid: str = "") -> BlockAnswer:
        """A pod CIDR of a node that the cluster may not have."""
        return factories.take(self.of_pods, allocation.Holder("node", name, uid))

    def hastily(self) -> SyncRun:
        """A pass that waits for nothing."""
        hasty = {"timeouts": (1, 0.2)}
        return self.sync(self.handler, open_client=lambda _: gateways.to(self.fake, **hasty))

    def twice(self, apart: float = 900) -> None:
        self.passed()
        self.clock.advance(apart)
        self.passed()


def row(block: BlockAnswer) -> Block:
    return Block.objects.get(pk=block["id"])


def count() -> int:
    return Leak.objects.count()
