"""Rule `restored-register-waits`: back up, go on, restore, recover; no block twice. With the commands."""

import pathlib

import pytest

from pools.clusters import recovery_mode
from pools.core import errors
from pools.models import Connection
from tests import commands, factories
from tests.failure import dumps
from tests.handlers.cilium_world import CiliumWorld
from tests.kube.fake import FakeCluster

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("remade_database")]


def _command(*arguments: str) -> str:
    return commands.output("ipam", *arguments)


def test_the_drill(fake: FakeCluster, tmp_path: pathlib.Path) -> None:
    world = CiliumWorld(fake, managed_resource=True)
    world.cidrs("a", "10.0.0.0/21")
    world.node("n1", demands={"a": 8})
    world.passed()
    vms = factories.pool("10.9.0.0/24")
    file = tmp_path / "hourly.dump"
    assert dumps.back_up(file).returncode == 0

    # An hour of work that the backup does not have.
    world.node("n2", demands={"a": 8})
    world.node("n3", demands={"a": 8})
    world.passed()
    in_use = world.listed()
    assert len(in_use) == 3
    edge_block = factories.take(vms, factories.holder("edge-7"))

    done = dumps.restore(file)
    assert (done.returncode, done.stderr) == (0, "")
    assert recovery_mode.clusters_to_list() == [world.cluster.name]
    assert world.held() == {"10.0.0.0/24": "n1"}
    with pytest.raises(errors.Recovering):
        factories.take(vms)
    # What no cluster shows, somebody knows: recorded while nothing else can be taken.
    _command("recovery", "hold", edge_block["cidr"], "vm/edge-7", f"--cluster={vms.cluster}",
             f"--pool={vms.name}", "--reason=its owner said so")  # fmt: skip
    world.restarted()
    world.connection = Connection.objects.get()
    world.node("n4", demands={"a": 8})
    world.passed()
    assert world.held() == in_use
    assert recovery_mode.current_recovery() is None

    world.passed()
    # Fails where two nodes list one block.
    assert world.listed() == world.held()
    assert world.held().items() > in_use.items()
    assert set(world.held().values()) == {"n1", "n2", "n3", "n4"}
    assert factories.take(vms)["cidr"] != edge_block["cidr"]
