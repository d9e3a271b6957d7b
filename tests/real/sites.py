"""A real API server as a cluster of the register, and the programs of an installation beside it."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from pools.clusters.client import kubeconfig
from pools.clusters.reconcile import connecting, registry
from pools.models import Connection, SyncRun
from pools.platform.outbound import secrets
from tests.kube import gateways
from tests.kube.real import RealCluster
from tests.reconcile import processes, small

OVN = (
    "k8s.ovn.org_clusteruserdefinednetworks",
    "k8s.ovn.org_userdefinednetworks",
    "k8s.cni.cncf.io_network-attachment-definitions",
    "k8s.cni.cncf.io_ipamclaims",
)
KUBEVIRT = ("kubevirt.io_virtualmachines", "kubevirt.io_virtualmachineinstances")
CILIUM = ("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")


def connect(kube: RealCluster, *managed_resources: Any) -> Connection:
    """The server as a cluster of the register, managed when it has managed resources."""
    return small.connect(kube, managed_resources=managed_resources)  # type: ignore[arg-type]  # the fake's interface


def reach(connection: Connection, config: str) -> None:
    """The connection gets the URL and the credentials of this kubeconfig."""
    access = kubeconfig.read(config, now=timezone.now()).access
    owner = connecting.secret_owner(connection.cluster_id)
    sealed = secrets.key_ring().seal(access.dump(), owner=owner)
    Connection.objects.filter(pk=connection.pk).update(sealed=sealed)


def reconcile(connection: Connection, kube: RealCluster) -> SyncRun:
    """A full pass with the handlers of an installation."""
    return small.reconcile(connection, *registry.HANDLERS, open_client=lambda _: gateways.to(kube))


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[None]:
    """`manage.py ARGUMENTS` in a process of its own, until the block ends."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=processes.ROOT,
            env=processes.environment(),
            stdout=log,
            stderr=log,
        )
        try:
            yield
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode())
            raise
        finally:
            process.kill()
            process.wait()
