"""A cluster with VMs, their instances, pods and claims, all of which are read."""

from typing import Any

from claims.ipamclaims.handler import IPAMClaimHandler
from claims.workloads.handlers import Pods, VirtualMachineInstances, VirtualMachines
from pools.models import SyncRun, Trigger
from pools.register.leaks import detection
from tests.claims.ipamclaims.world import World
from tests.kube.fake import FakeCluster
from tests.kube.manifests import Manifest, build, owner_reference
from tests.pools.conftest import Clock

CRDS = (
    "k8s.cni.cncf.io_ipamclaims",
    "kubevirt.io_virtualmachines",
    "kubevirt.io_virtualmachineinstances",
    "k8s.cni.cncf.io_network-attachment-definitions",
)


class Machines(World):
    """`without`: kinds that a pass does not list."""

    def __init__(
        self,
        server: FakeCluster,
        clock: Clock,
        subnets: tuple[str, ...] = ("10.0.0.0/24", "2001:db8::/64"),
    ) -> None:
        super().__init__(server, managed_resource=False)
        self.fake = server
        self.clock = clock
        self.blue = self.network(*subnets, cooldown=0)

    def run(self, *, dry: bool = False, without: str = "") -> SyncRun:
        handlers = [VirtualMachines(), VirtualMachineInstances(), Pods(), IPAMClaimHandler()]
        listed = [handler for handler in handlers if handler.kind != without]
        return self.sync(*listed, trigger=Trigger.DRY_RUN if dry else Trigger.SCHEDULE)

    def vm_with_claim(self, *ips: str, vm: str = "vm1") -> str:
        """A VM and the claim that it owns; the VM's uid."""
        uid = self.machine(vm)
        self.claim(vm, uid=uid, status={"ips": list(ips or ("10.0.0.8/24",))})
        return uid

    def instance(self, owner: Manifest | None = None) -> Manifest:
        """The instance of the VM vm1, which runs."""
        owners = [owner_reference(owner)] if owner else []
        parts: Manifest = {"spec": {"domain": {"devices": {}}}, "status": {"phase": "Running"}}
        parts["metadata"] = {"ownerReferences": owners}
        kind = "VirtualMachineInstance"
        return self.fake.put(build("kubevirt.io/v1", kind, "vm1", "blue", **parts))

    def launcher(self, name: str, instance: Manifest) -> None:
        owner = owner_reference(instance, controller=True)
        metadata = {"labels": {"kubevirt.io": "virt-launcher"}, "ownerReferences": [owner]}
        spec = {"containers": [{"name": "c", "image": "i"}]}
        self.fake.put(build("v1", "Pod", name, "blue", metadata=metadata, spec=spec))

    def times(self, count: int, apart: float = 900, *, without: str = "") -> None:
        """So many passes, the time between them also after the last."""
        for _ in range(count):
            record = self.run(without=without)
            assert not record.error_code, record.error
            self.clock.advance(apart)

    def leaked(self) -> list[str]:
        return _addresses(detection.confirmed_leaks())

    def suspected(self) -> list[str]:
        return _addresses(detection.suspected_leaks())


def _addresses(leaks: Any) -> list[str]:
    cidrs = leaks.order_by("block__cidr").values_list("block__cidr", flat=True)
    return [str(cidr.network_address) for cidr in cidrs]
