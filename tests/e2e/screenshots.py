"""`make screenshots`: each main page of a site with the demo fleet, light, into docs/screenshots/."""

import os
import pathlib

import pytest
from django.contrib.auth import get_user_model

from claims.access import memberships
from claims.models import IPAMClaim, Network
from claims.operations import demo as vm_demo
from pools.models import Cluster, Connection, Now, ObservedObject, Pool, SyncRun
from pools.platform.conditions import evaluation
from pools.register.demo import demo
from tests.claims.imports import drafts
from tests.docs import pages
from tests.e2e import fleet
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

FOLDER = pathlib.Path(os.environ.get("SCREENSHOTS", pages.ROOT / "docs" / "screenshots"))
SIZE = (1280, 720)
WIDE = (1440, 810)
SIZES = {
    "overview": (1440, 1100),
    "pools": WIDE,
    "networks": WIDE,
    "mac-entries": WIDE,
    "address-plan": WIDE,
}
PASSWORD = "a password of the screenshots"


def connect_cluster() -> None:
    """Give the demo fleet a connected cluster in which every full pass succeeds."""
    fleet.observed()
    SyncRun.objects.filter(succeeded=False).delete()
    ObservedObject.objects.exclude(problem="").delete()
    Connection.objects.update(failures=0, error_code="", error="", succeeded_at=Now())


def draft_import() -> int:
    """Draft an import of three good rows and one that asks for the gateway."""
    network = Network.objects.get(name=vm_demo.BLUE)
    rows = [
        drafts.row(f"shop-{number}", drafts.mac(number), f"10.128.3.{number}")
        for number in (41, 42, 43)
    ]
    gateway = drafts.row("shop-gateway", drafts.mac(44), "10.128.0.1")
    return int(drafts.draft(network, *rows, gateway, namespace="shop").pk)


def page_paths() -> dict[str, str]:
    """The file names of the screenshots, and the path of each page."""
    network = Network.objects.get(name=vm_demo.BLUE)
    pool = Pool.objects.get(cluster__name=demo.FRANKFURT, name="yellow-pool")
    cluster = Cluster.objects.get(name=demo.FRANKFURT)
    claim = IPAMClaim.objects.get(network=network, vm="bank-99")
    return {
        "find": "find/?q=10.20.1.7",
        "address-plan": "address-plan/?parent=10.0.0.0/8",
        "pools": "pools/pool/",
        "pool": f"pools/pool/{pool.pk}/change/",
        "blocks": "pools/block/",
        "clusters": "pools/cluster/",
        "cluster": f"pools/cluster/{cluster.pk}/change/",
        "networks": "claims/network/",
        "network": f"claims/network/{network.pk}/change/",
        "mac-entries": "claims/entry/",
        "claim": f"claims/ipamclaim/{claim.pk}/change/",
        "import": f"pools/import/{draft_import()}/change/",
        "leaks": "pools/leak/",
        "events": "pools/event/",
    }


def take_screenshot(visit: Visit, name: str, path: str) -> None:
    width, height = SIZES.get(name, SIZE)
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.open(f"/admin/{path}")
    visit.page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


def log_in_as_vm_owner(visit: Visit) -> None:
    owner = get_user_model().objects.create_user("vera", password=PASSWORD)
    cluster = Cluster.objects.get(name=demo.FRANKFURT)
    memberships.create(cluster, ["shop"], author=demo.AUTHOR, user=owner)
    visit.page.context.clear_cookies()
    visit.open("/admin/login/")
    visit.page.fill("input[name=username]", owner.username)
    visit.page.fill("input[name=password]", PASSWORD)
    visit.page.press("input[name=password]", "Enter")
    visit.page.wait_for_url("**/admin/")


def test_screenshots(visit: Visit) -> None:
    for picture in FOLDER.glob("*.png"):
        picture.unlink()
    visit.page.emulate_media(color_scheme="light")
    evaluation.evaluate()
    take_screenshot(visit, "overview", "")
    connect_cluster()
    for name, path in page_paths().items():
        take_screenshot(visit, name, path)
    log_in_as_vm_owner(visit)
    take_screenshot(visit, "vm-owner", "")
    assert sum(path.stat().st_size for path in FOLDER.glob("*.png")) < 2_300_000
