"""Rule `credentials-are-sealed`, on a running site."""

import psycopg
import pytest

from ipam_site import data_folder
from tests.kube import certificates, kubeconfigs
from tests.security.target import RunningTarget

CANARY = "canary-credential-5d1f0a77"


@pytest.mark.exhaustive
def test_no_door_gives_it_back_and_a_copied_row_opens_nothing(running: RunningTarget) -> None:
    authority = certificates.Authority().pem
    answers = []
    for name, token in (("sealed-a", CANARY), ("sealed-b", "another-credential")):
        running.rest("POST", "clusters/", {"name": name})
        config = kubeconfigs.text("https://10.255.255.1:6443", authority, token=token)
        place = f"clusters/{name}/connection/"
        created = running.rest("PUT", place, {"kubeconfig": config, "offline": True})
        assert created.status == 201, created.text
        answers += [created, running.rest("GET", place), running.rest("GET", f"clusters/{name}/")]
    answers += [running.rest("GET", "events/?limit=100"), running.rest("GET", "clusters/")]
    assert not [answer for answer in answers if CANARY in answer.text]
    assert CANARY not in running.dump()
    assert CANARY not in running.logs()
    with psycopg.connect(data_folder.connections(running.up.data)["database_url"]) as database:
        columns = database.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = 'pools_connection' AND column_name LIKE '%sealed%'"
        ).fetchall()
        assert columns
        for (column,) in columns:
            database.execute(
                f"UPDATE pools_connection SET {column} = (SELECT {column} FROM pools_connection"  # type: ignore[arg-type]
                "  WHERE cluster_id = (SELECT id FROM pools_cluster WHERE name = 'sealed-a'))"
                " WHERE cluster_id = (SELECT id FROM pools_cluster WHERE name = 'sealed-b')"
            )
    answer = running.rest("POST", "clusters/sealed-b/connection/test/", {})
    assert "stored credential is not that of" in answer.text, answer.text
