"""Ends with 0 when this container's web server answers /healthz: HEALTHCHECK of the image.

The standard library only, so that a probe costs a tenth of a second and not the import of Django.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys

_SECONDS = 4


def answers(environment: dict[str, str]) -> bool:
    """Whether the server of WEB_BIND says 200, over TLS when it has a certificate."""
    host, _, port = environment.get("WEB_BIND", "127.0.0.1:8000").rpartition(":")
    every = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "::1"}  # noqa: S104
    host = every.get(host, host.strip("[]"))
    connection: http.client.HTTPConnection
    if environment.get("WEB_TLS_CERT"):
        # Our own process: its certificate is for the name that others call it by.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, int(port), timeout=_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, int(port), timeout=_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if answers(dict(os.environ)) else 1)
