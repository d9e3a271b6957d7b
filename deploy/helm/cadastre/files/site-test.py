"""`helm test`: calls the site as its proxy does. Arguments: the URL of the Service, the public host name."""

import http.client
import re
import ssl
import sys
import urllib.parse

_SECONDS = 10


def get(url: str, host: str, path: str) -> str:
    """Return the body of a page; end with a message if its status is not 200."""
    server = urllib.parse.urlsplit(url).netloc
    if url.startswith("https:"):
        # The certificate is for the name by which others call the site.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(server, timeout=_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(server, timeout=_SECONDS)
    connection.request("GET", path, headers={"Host": host, "X-Forwarded-Proto": "https"})
    response = connection.getresponse()
    body = response.read().decode()
    if response.status != http.client.OK:
        sys.exit(f"{path}: {response.status} {body[:500]}")
    return body


def main(url: str, host: str) -> None:
    for path in ("/healthz", "/readyz"):
        get(url, host, path)
    page = get(url, host, "/admin/login/")
    stylesheets = re.findall(r'<link[^>]+href="(/static/[^"]+\.css)"', page)
    if not stylesheets:
        sys.exit("/admin/login/: no stylesheet")
    for path in stylesheets:
        get(url, host, path)
    sys.stdout.write(
        f"{url} serves {host}: ready, login page with {len(stylesheets)} stylesheets\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
