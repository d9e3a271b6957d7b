"""Logs: one line per record on stdout, without secrets and without control characters.

The formatter redacts secrets, and not a filter: only the formatter has the message, its arguments and
the traceback as one text.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any

_HIDDEN = "[redacted]"
# Repetitions are bounded, so that no logged text of a user makes matching slow.
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL)
# `Authorization: Token abc`, `{'authorization': 'Bearer abc'}`, `Cookie: sessionid=abc; csrftoken=def`
_HEADER = re.compile(
    r"""((?:authorization|cookie|set-cookie)["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\n"']+)""",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"""((?:password|passwd|token|secret|client-key-data|client-certificate-data|api[_-]?key"""
    r"""|secret[_-]?key)[\w-]{0,80}["']?\s{0,20}[:=]\s{0,20})(?:"[^"\n]*"|'[^'\n]*'|[^\s,;&"'}\])]+)""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(bearer|token|basic)\s+[A-Za-z0-9+/=._~-]{16,}", re.IGNORECASE)
_URL_PASSWORD = re.compile(
    r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{0,256}:)[^\s@]{1,2048}(@)", re.IGNORECASE
)
# The key in the URL of an admission webhook, valid or not, and keys outside of URLs.
_WEBHOOK = re.compile(r"(/webhooks/v\d+/[^/\s]+/)[^/\s]+(/(?:validate|mutate)-)|\bcadw_[\w-]{16,}")
# Of a request line as urllib3 logs it: the query of a webhook's URL may be its secret.
_POSTED_QUERY = re.compile(r"""("POST [^"\s?]{1,2000}\?)[^"\s]{1,4000}""")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def redact(message: str) -> str:
    """Replace passwords, tokens, cookies, keys and PEM blocks of a message."""
    message = _PEM.sub(_HIDDEN, message)
    message = _HEADER.sub(rf"\1{_HIDDEN}", message)
    message = _PAIR.sub(rf"\1{_HIDDEN}", message)
    message = _SCHEME.sub(rf"\1 {_HIDDEN}", message)
    message = _POSTED_QUERY.sub(rf"\1{_HIDDEN}", message)
    message = _URL_PASSWORD.sub(rf"\1{_HIDDEN}\2", message)
    return _WEBHOOK.sub(lambda match: f"{match[1] or ''}{_HIDDEN}{match[2] or ''}", message)


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

    def format(self, record: logging.LogRecord) -> str:
        return one_line(redact(super().format(record)))


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
