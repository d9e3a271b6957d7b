"""SQL objects (functions, triggers, views, storage settings): one file for each, which the migrations install."""

from importlib import resources

# Types, sequences and functions that columns name.
_BEFORE_TABLES = ("clock",)
_AFTER_TABLES = (
    "rules",
    "allocate",
    "observed_cidrs",
    "recovery",
    "event_log",
    "token_events",
    "factor_events",
    "plan",
    "register_rows",
    "pgtrigger",
    "storage",
)


def before_tables() -> str:
    return "".join(map(text, _BEFORE_TABLES))


def after_tables() -> str:
    return "".join(map(text, _AFTER_TABLES))


def text(name: str, package: str = __name__) -> str:
    """Return the text of one file."""
    return resources.files(package).joinpath(f"{name}.sql").read_text()
