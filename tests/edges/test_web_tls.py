"""The web server's own TLS: handshakes of its event loop use the certificate files as they are now."""

from __future__ import annotations

import http.client
import pathlib
import ssl

from tests import running_site
from tests.kube.certificates import Authority


def _ask(site: running_site.Site, authority: Authority) -> int:
    context = ssl.create_default_context(cadata=authority.pem)
    connection = http.client.HTTPSConnection("localhost", site.port, timeout=60, context=context)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_certificate_that_was_replaced_is_used_at_the_next_handshake(
    tmp_path: pathlib.Path,
) -> None:
    authority, renewed = Authority(), Authority()
    certificate, key = authority.server().files(tmp_path, "server")
    tls = {"WEB_TLS_CERT": str(certificate), "WEB_TLS_KEY": str(key)}
    with running_site.web(WEB_WORKERS="1", **tls) as site:
        assert _ask(site, authority) == 200
        (tmp_path / "server.crt").write_text("half of a")
        assert _ask(site, authority) == 200
        renewed.server().files(tmp_path, "server")
        assert _ask(site, renewed) == 200
