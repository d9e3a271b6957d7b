"""A cluster whose CiliumNodes are observed, and blocks of nodes that it may not have."""

from pools.core.block_fields import BlockAnswer
from pools.models import SyncRun
from pools.register.allocator import allocation
from pools.register.leaks import detection
from tests import factories
from tests.handlers.node_world import World
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock


class Nodes(World):
    def __init__(self, fake: FakeCluster, clock: Clock) -> None:
        super().__init__(fake)
        self.clock = clock
        self.of_pods = self.pool("a", "10.0.0.0/16", cooldown=0)

    def holds(self, name: str, uid: str = "") -> BlockAnswer:
        """A pod CIDR of a node that the cluster may not have."""
        return factories.take(self.of_pods, allocation.Holder("node", name, uid))

    def hastily(self) -> SyncRun:
        """A pass that waits for nothing."""
        return self.sync(
            self.handler, open_client=lambda _: gateways.to(self.fake, timeouts=(1, 0.2))
        )

    def twice(self, apart: float = 900) -> None:
        self.passed()
        self.clock.advance(apart)
        self.passed()

    def leaked(self) -> list[str]:
        return list(
            detection.confirmed_leaks().order_by("holder_id").values_list("holder_id", flat=True)
        )

    def suspected(self) -> list[str]:
        return list(
            detection.suspected_leaks().order_by("holder_id").values_list("holder_id", flat=True)
        )
