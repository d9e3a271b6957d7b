"""No query parameter has a line break: what is compared is what was sent."""

import pytest

from tests.claims import worlds
from tests.edges import api as apis

MAC = "00:50:56:aa:00:01"


@pytest.mark.sample(16)
@pytest.mark.parametrize("tail", ["%0a", "%0d%0a", "%09", "%1b", "%c2%85"])
@pytest.mark.parametrize(
    "path", ["ippools/{ippool}/entries/", "ipamclaims/", "networks/{network}/addresses-for-mac/"]
)
def test_a_mac_address(path: str, tail: str) -> None:
    network = worlds.network()
    ippool = worlds.ippool(network)
    worlds.entry(ippool, MAC, "10.0.0.5/24")
    url = f"{path.format(ippool=ippool.pk, network=network.pk)}?mac={MAC}"
    api = apis.Api()
    assert api("GET", url).status_code == 200
    apis.refused(api("GET", url + tail), 400, "invisible_character")
