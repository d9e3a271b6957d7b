"""Management commands, run in the process of the test."""

import io

from django.core.management import call_command


def output(*words: str) -> str:
    """Run a command; return what it printed. Raises CommandError and SystemExit as the command does."""
    out = io.StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def status_and_output(*words: str) -> tuple[int, str]:
    """Run a command that ends with an exit status; return the status and what it printed."""
    out = io.StringIO()
    try:
        call_command(*words, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()
