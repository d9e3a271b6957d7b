"""Address and credentials of an API server or a webhook receiver."""

from __future__ import annotations

import json
import pathlib
from dataclasses import asdict, dataclass, field

from pools.platform.outbound import faults


@dataclass(frozen=True)
class Access:
    """The address of an API server and the credentials for it, in PEM; "" for what is not used.

    Neither repr nor str shows a credential.
    """

    server: str  # https://host:port, perhaps with a path
    ca: str = ""  # certificates in PEM; "" trusts the system's own
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    tls_server_name: str = ""  # the name that the certificate must have, instead of the server's
    token_file: str = ""  # read for each request, instead of `token`

    def bearer(self) -> str:
        """Return the token to send, "" if there is none. Raises Unauthorized if its file is unreadable."""
        if not self.token_file:
            return self.token
        try:
            return pathlib.Path(self.token_file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise faults.Unauthorized("the service account's token cannot be read") from error

    def dump(self) -> bytes:
        """Return all fields with the credentials, to be sealed (pools.platform.outbound.secrets)."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, dumped: bytes) -> Access:
        """Return the access that `dump` wrote."""
        return cls(**json.loads(dumped))
