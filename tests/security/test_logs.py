"""Rules `logs-hold-no-secret` and `metrics-name-nobody`."""

import pytest

from tests import eventually
from tests.security.target import RunningTarget, Target

CANARY = "canary-word-b7e2c9"


@pytest.mark.exhaustive
def test_what_callers_send_wrongly_is_in_no_log(running: RunningTarget) -> None:
    token = running.tokens["viewer"]
    running.ask("GET", "/api/v1/pools/", Authorization=f"Bearer {CANARY}")
    running.ask("POST", "/api/v1/pools/", f'{{"password": "{CANARY}", ', token="administrator")
    running.ask("POST", "/admin/login/", f"username=admin&password={CANARY}")
    running.ask("GET", "/api/v1/nowhere/", Cookie=f"sessionid={CANARY}")
    running.ask("GET", f"/api/v1/pools/?token={token}", token="viewer")
    for encoded in (token, token.replace("_", "%5f"), f"%63{token[1:]}"):
        running.ask("GET", f"/api/v1/pools/{encoded}/", Referer=f"https://h/{encoded}")
    last = "/api/v1/nowhere/the-last-one/"
    running.ask("GET", last)
    eventually.until(lambda: last in running.logs())
    logged = running.logs()
    assert CANARY not in logged
    assert not [person for person, stored in running.tokens.items() if stored[4:] in logged]


def test_metrics_are_for_those_who_may_and_name_nobody(target: Target) -> None:
    assert target.ask("GET", "/metrics").status == 401
    assert target.ask("GET", "/metrics", token="vera").status == 403
    text = target.ask("GET", "/metrics", token="viewer").text
    assert "ipam_" in text
    for private in ("vera", "alpha", "10.77.0.5", "02:aa:00:00:00:01"):
        assert f'"{private}"' not in text, private
