"""Logs: one line per record on stdout, without secrets and without control characters.

The formatter redacts secrets, and not a filter: only the formatter has the message, its arguments and
the traceback as one text.
"""

import logging
import re
import time
from typing import Any

from ipam_site import env
from pools.core.redaction import redact

# Exact values that no log may hold, besides what the form of a text shows.
_SECRETS = (
    "SECRET_KEY",
    "IPAM_OIDC_CLIENT_SECRET",
    "IPAM_LDAP_BIND_PASSWORD",
    "IPAM_METRICS_TOKEN",
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(message: str) -> str:
    """Escape control characters, so that a message cannot forge a log line."""
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), message)


class LineFormatter(logging.Formatter):
    """Format a record as one redacted line: time, level, logger, message, escaped traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self.default_time_format = "%Y-%m-%dT%H:%M:%S"
        self.default_msec_format = "%s.%03dZ"
        self.converter = time.gmtime
        self._secrets = [env.secret(name) for name in _SECRETS]

    def format(self, record: logging.LogRecord) -> str:
        return one_line(redact(super().format(record), self._secrets))


def config(level: str) -> dict[str, Any]:
    """Return the logging configuration of the web server, the workers and the commands."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "ipam_site.logs.LineFormatter"}},
        "handlers": {
            "stdout": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stdout",
                "formatter": "line",
            }
        },
        "root": {"level": level, "handlers": ["stdout"]},
        "loggers": {
            # Without their own handlers, which would print each record again, without redaction.
            **{
                name: {"handlers": [], "level": level, "propagate": True}
                for name in ("django", "gunicorn.error", "gunicorn.access")
            },
            # Only warnings: each tick, every five seconds, would log four lines.
            **{
                name: {"level": "WARNING"}
                for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace")
            },
        },
    }
