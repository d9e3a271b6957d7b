"""The page Connect, followed as it says: its manifest is applied, its token made, its form posted, the first sync reads."""

import html
import os
import pathlib
import re
import subprocess
from typing import Any

import pytest
from django.urls import reverse

from pools.clusters.reconcile import connecting, registry
from pools.models import Connection, ObservedObject, Pool
from tests import factories, people
from tests.kube.real import RealCluster, assets
from tests.real import sites
from tests.reconcile import small

pytestmark = pytest.mark.django_db(transaction=True)
POOL: dict[str, Any] = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumPodIPPool",
    "metadata": {"name": "green"},
    "spec": {"ipv4": {"cidrs": ["10.20.0.0/16"], "maskSize": 24}},
}
_COMMAND = re.compile(r'<pre [^>]*id="([a-z-]+)"[^>]*>(.*?)</pre>', re.DOTALL)


def shell(command: str, kubeconfig: pathlib.Path) -> str:
    """Run a command of the page in a shell, with kubectl as the admin of the cluster."""
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PATH": f"{assets()}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("mode", ["observed", "managed"])
def test_the_page_is_followed(
    kube: RealCluster, tmp_path: pathlib.Path, settings: Any, mode: str
) -> None:
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    kube.anew(*sites.CILIUM, *sites.OVN, *sites.KUBEVIRT)
    kube.put(POOL)
    cluster, browser = factories.cluster(), people.browser()
    url = reverse("admin:pools_cluster_connect", args=[cluster.pk])
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kube.kubeconfig())
    shown = _COMMAND.findall(browser.get(url).content.decode())
    commands = {name: html.unescape(command) for name, command in shown}
    shell(commands["apply-to-read"], kubeconfig)
    form = {
        "server": shell(commands["show-server"], kubeconfig),
        "ca": shell(commands["show-ca"], kubeconfig),
        "token": shell(commands["create-token"], kubeconfig),
        "mode": mode,
        "managed_resources": ["pools"] if mode == "managed" else [],
    }
    if mode == "managed":  # what reads may not write, and the page names it
        refused = browser.post(url, form).content.decode()
        assert "patch ciliumpodippools.cilium.io" in refused
        assert not Connection.objects.exists()
        shell(commands["apply-to-write"], kubeconfig)
    tested = browser.post(url, form | {"_test": "1"}).content.decode()
    assert "Connection test succeeded" in tested
    assert form["token"] not in tested
    assert browser.post(url, form).status_code == 302
    connection = Connection.objects.get(cluster=cluster)
    assert connecting.cluster_access(connection).token == form["token"]
    run = small.reconcile(connection, *registry.HANDLERS)
    assert run.succeeded, run.error
    assert ObservedObject.objects.get(cluster=cluster, kind="CiliumPodIPPool").name == "green"
    assert Pool.objects.get(cluster=cluster).name == "green"
