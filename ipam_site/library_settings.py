"""Settings of libraries that depend on nothing else in settings.py, which takes them in: Celery, its schedule, REST.

The connection to the broker is in settings.py.
"""

import datetime
from typing import Any

import kombu
from celery.schedules import crontab

from ipam_site import env

# --- Celery ---------------------------------------------------------------------------------------

# Acknowledge a message after its task has ended: kill -9 of a worker loses no message.
CELERY_TASK_ACKS_LATE = True
# Without it, a message is acknowledged although its child process was killed.
CELERY_TASK_REJECT_ON_WORKER_LOST = True
# Tasks store their results in the register's tables; no result backend is needed.
CELERY_TASK_IGNORE_RESULT = True
# No task may run forever; the soft limit lets it end its transaction first.
CELERY_TASK_TIME_LIMIT = 240
CELERY_TASK_SOFT_TIME_LIMIT = 210
# A worker reserves only the message that it processes, so that its death delays no other message.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A task that continues after the connection to the broker is lost would run beside its redelivered
# copy.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
# On a stop, running tasks have this time to finish; then their messages return to the queue. `up`
# shortens it, because it guarantees to stop within 10 s.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = env.integer("WORKER_SOFT_SHUTDOWN_SECONDS", 20)
CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE = True
# Restart child processes now and then, which frees memory leaked by libraries.
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 400_000
# A worker that starts before Redis waits for Redis.
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# No pickle, which could execute code.
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
# Only these queues exist: a misspelt queue name would collect messages unnoticed. Clusters have a
# queue of their own, because they may hang, and other tasks must not wait for them.
CELERY_TASK_DEFAULT_QUEUE = "ipam.default"
CELERY_TASK_QUEUES = [kombu.Queue("ipam.default"), kombu.Queue("ipam.clusters")]
CELERY_TASK_ROUTES = {"pools.tasks.reconcile": {"queue": "ipam.clusters"}}
CELERY_TASK_CREATE_MISSING_QUEUES = False
# Messages are only hints to process rows: a web request does not wait for an unavailable broker.
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 2,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.2,
}
# ipam_site.logs redacts secrets; Celery's logging would not.
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# This scheduler keeps its state in memory: kill -9 cannot corrupt a file, and a repeated tick does no
# harm.
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"


def _every(seconds: int, task: str) -> dict[str, Any]:
    # A message expires at the next tick, so that messages do not accumulate while no worker runs.
    return {"task": task, "schedule": float(seconds), "options": {"expires": seconds}}


CELERY_BEAT_SCHEDULE = {
    "tick": _every(5, "pools.tasks.tick"),
    "retry requests": _every(5, "pools.tasks.retry_requests"),
    "end cooldowns": _every(5, "pools.tasks.end_cooldowns"),
    "nudge waiting claims": _every(30, "pools.tasks.nudge_waiting_claims"),
    "reconcile due": _every(5, "pools.tasks.reconcile_due"),
    "work off imports": _every(5, "pools.tasks.process_imports"),
    "queue mirrors of NetBox": _every(30, "pools.tasks.queue_mirrors"),
    "end recovery": _every(30, "pools.tasks.end_recovery"),
    "refresh usage": _every(30, "pools.tasks.refresh_usage"),
    "take samples": _every(600, "pools.tasks.take_samples"),
    "evaluate alerts": _every(30, "pools.tasks.evaluate_alerts"),
    "tidy alerts": _every(3600, "pools.tasks.tidy_alerts"),
    "check data": {
        "task": "pools.tasks.check_data",
        "schedule": crontab(hour=2, minute=0),  # UTC
        "options": {"expires": 3600},
    },
    "tidy idempotency keys": _every(3600, "pools.tasks.tidy_idempotency_keys"),
    "tidy login failures": _every(3600, "pools.tasks.tidy_login_failures"),
    "tidy sessions": _every(3600, "pools.tasks.tidy_sessions"),
    "tidy measures": _every(3600, "pools.tasks.tidy_measures"),
    "purge events": _every(3600, "pools.tasks.purge_events"),
    "tidy leaks": _every(300, "pools.tasks.tidy_leaks"),
    "seal events": _every(60, "pools.tasks.seal_events"),
    "verify events": {
        "task": "pools.tasks.verify_events",
        "schedule": crontab(hour=3, minute=20),  # UTC
        "options": {"expires": 3600},
    },
    "tidy decisions": _every(3600, "claims.tasks.tidy_decisions"),
    "recheck duplicates": _every(300, "claims.tasks.recheck_duplicates"),
    "refresh workload counts": _every(600, "claims.tasks.refresh_workload_counts"),
}

# --- REST -----------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["pools.platform.rest.parsing.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "ipam_site.http.problems.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "pools.platform.rest.schema.Schema",
}
# Set explicitly, because migrations that refer to the model read the setting.
KNOX_TOKEN_MODEL = "knox.AuthToken"  # noqa: S105 - no secret
REST_KNOX = {
    "TOKEN_TTL": datetime.timedelta(days=env.integer("TOKEN_DAYS", 365, minimum=1)),
    # Using a token does not extend its validity.
    "AUTO_REFRESH": False,
    "AUTH_HEADER_PREFIX": "Token",
    # Secret scanners recognize tokens by it.
    "TOKEN_PREFIX": "cad_",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Cadastre",
    "DESCRIPTION": "Address management for Kubernetes fleets.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # A body without what cannot be set is a component of its own: clients are generated from both.
    "COMPONENT_SPLIT_REQUEST": True,
    # Choices stay where they are used: components of enums are named by guesses that clash.
    "POSTPROCESSING_HOOKS": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SERVE_AUTHENTICATION": [
        "pools.platform.rest.authentication.TokenAuthentication",
        "pools.platform.rest.authentication.SessionAuthentication",
    ],
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "docExpansion": "none",
        "filter": True,
        "persistAuthorization": True,
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}
