"""Django's settings, from environment variables, which docs/reference/settings.md lists.

The defaults are for production: DEBUG off, HTTPS on. `manage.py up` (`make run`) turns HTTPS off for
its child processes, because it listens on 127.0.0.1 without TLS.
"""

from urllib import parse

import django_stubs_ext
import pghistory
from csp import constants as csp
from django.core import exceptions

import ipam_site
from ipam_site import admin_site, broker, data_folder, database_url, env, logs
from ipam_site.library_settings import *  # noqa: F403  # Celery, REST: Django reads the settings here
from ipam_site.sign_on import ldap_settings
from pools.core import errors, metric_labels

# Allows ModelAdmin[Pool] and QuerySet[Block] at run time.
django_stubs_ext.monkeypatch()

BASE_DIR = data_folder.PROJECT
IPAM_DATA = data_folder.locate()
_connections = data_folder.connections(IPAM_DATA)

# --- security -------------------------------------------------------------------------------------

DEBUG = env.boolean("DEBUG", False)
# Without a key, Django refuses operations that need it, but `check` runs.
SECRET_KEY = env.secret("SECRET_KEY") or data_folder.secrets(IPAM_DATA).get("secret_key", "")
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")
if DEBUG and env.secret("SECRET_KEY"):
    # Debug pages show settings and variables: not on a site with a production key.
    raise exceptions.ImproperlyConfigured("DEBUG=1 refuses to run with SECRET_KEY set")

ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

IPAM_HTTPS = env.boolean("IPAM_HTTPS", True)
SECURE_SSL_REDIRECT = IPAM_HTTPS
SESSION_COOKIE_SECURE = IPAM_HTTPS
CSRF_COOKIE_SECURE = IPAM_HTTPS
SECURE_HSTS_SECONDS = env.integer("HSTS_SECONDS", 31_536_000) if IPAM_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IPAM_HTTPS
SECURE_HSTS_PRELOAD = IPAM_HTTPS
IPAM_BEHIND_PROXY = env.boolean("IPAM_BEHIND_PROXY", False)
if IPAM_BEHIND_PROXY:
    # Only if the proxy overwrites this header: otherwise clients could claim HTTPS.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Failed sign-ins within 15 minutes, after which further ones are refused.
IPAM_LOGIN_FAILURES_PER_ACCOUNT = env.integer("IPAM_LOGIN_FAILURES_PER_ACCOUNT", 10, minimum=1)
IPAM_LOGIN_FAILURES_PER_ADDRESS = env.integer("IPAM_LOGIN_FAILURES_PER_ADDRESS", 50, minimum=1)
# Which accounts of this site must have a second factor: optional, administrators or everybody.
IPAM_SECOND_FACTOR = env.text("IPAM_SECOND_FACTOR", "optional")
if IPAM_SECOND_FACTOR not in {"optional", "administrators", "everybody"}:
    raise exceptions.ImproperlyConfigured(
        "IPAM_SECOND_FACTOR must be optional, administrators or everybody"
    )
SESSION_ENGINE = "pools.platform.sessions"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_FAILURE_VIEW = "ipam_site.http.problems.csrf_failure"

_STRICT_CSP: dict[str, list[str]] = {
    "default-src": [csp.SELF],
    "img-src": [csp.SELF, "data:"],
    "object-src": [csp.NONE],
    "base-uri": [csp.NONE],
    "form-action": [csp.SELF],
    "frame-ancestors": [csp.NONE],
}
CONTENT_SECURITY_POLICY = {"DIRECTIVES": _STRICT_CSP}
# The longest prefix wins; other paths are strict. unfold uses Alpine, which evaluates expressions and
# sets inline styles; the self-hosted API browser sets inline styles only.
IPAM_CSP_BY_PREFIX = {
    "/admin/": {
        **_STRICT_CSP,
        "script-src": [csp.SELF, csp.UNSAFE_EVAL],
        "style-src": [csp.SELF, csp.UNSAFE_INLINE],
    },
    "/api/v1/docs/": {**_STRICT_CSP, "style-src": [csp.SELF, csp.UNSAFE_INLINE]},
}

# A request body above these limits is refused before it is parsed.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

# --- sign-on with the organization's directory (docs/how-to/sign-on.md) ------------------------------

# What groups of the directory grant: a JSON object from groups to roles, and a regular expression with the
# named groups `namespace` and perhaps `cluster`, which makes VM owners. `check` validates both.
IPAM_SIGN_ON_ROLES = env.text("IPAM_SIGN_ON_ROLES") or "\n".join(
    env.lines_of_file("IPAM_SIGN_ON_ROLES_FILE")
)
IPAM_SIGN_ON_NAMESPACES = env.text("IPAM_SIGN_ON_NAMESPACES")
# OpenID Connect, if the issuer is set.
IPAM_OIDC_ISSUER = env.text("IPAM_OIDC_ISSUER")
IPAM_OIDC_CLIENT_ID = env.text("IPAM_OIDC_CLIENT_ID")
IPAM_OIDC_CLIENT_SECRET = env.secret("IPAM_OIDC_CLIENT_SECRET")
IPAM_OIDC_NAME = env.text("IPAM_OIDC_NAME", "OpenID Connect")
IPAM_OIDC_SCOPES = env.words("IPAM_OIDC_SCOPES", ["openid", "profile", "email"])
IPAM_OIDC_USERNAME_CLAIM = env.text("IPAM_OIDC_USERNAME_CLAIM", "preferred_username")
IPAM_OIDC_EMAIL_CLAIM = env.text("IPAM_OIDC_EMAIL_CLAIM", "email")
IPAM_OIDC_GROUPS_CLAIM = env.text("IPAM_OIDC_GROUPS_CLAIM", "groups")
# Certificates (PEM) that the provider's must come from, instead of the system's authorities.
IPAM_OIDC_CA_FILE = env.text("IPAM_OIDC_CA_FILE")
# LDAP, if the URL is set.
IPAM_LDAP_URL = env.text("IPAM_LDAP_URL")
IPAM_LDAP_BIND_DN = env.text("IPAM_LDAP_BIND_DN")
IPAM_LDAP_BIND_PASSWORD = env.secret("IPAM_LDAP_BIND_PASSWORD")
IPAM_LDAP_USER_BASE = env.text("IPAM_LDAP_USER_BASE")
IPAM_LDAP_USERNAME_ATTRIBUTE = env.text("IPAM_LDAP_USERNAME_ATTRIBUTE", "uid")
IPAM_LDAP_GROUP_BASE = env.text("IPAM_LDAP_GROUP_BASE")
IPAM_LDAP_GROUP_FILTER = env.text("IPAM_LDAP_GROUP_FILTER", "(objectClass=*)")
IPAM_LDAP_GROUP_TYPE = env.text("IPAM_LDAP_GROUP_TYPE", "member")
# What identifies a person for ever: names are given to other people.
IPAM_LDAP_ID_ATTRIBUTE = env.text(
    "IPAM_LDAP_ID_ATTRIBUTE",
    "objectGUID" if IPAM_LDAP_GROUP_TYPE == "active-directory" else "entryUUID",
)
IPAM_LDAP_CA_FILE = env.text("IPAM_LDAP_CA_FILE")

# --- applications ---------------------------------------------------------------------------------

INSTALLED_APPS = [
    # Before the admin, whose templates it replaces.
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "ipam_site.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",  # its command clearsessions; its table is that of earlier versions
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",  # of templates of django-allauth
    "csp",
    "netfields",
    "pgtrigger",
    "pghistory",
    "rest_framework",
    "knox",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "pools",
    "claims",
    "ipam_site",
]
MIDDLEWARE = [
    # First: probes need no host check, redirect, session or database connection of the thread.
    "ipam_site.http.health.HealthMiddleware",
    # The same is true for a scrape with a token.
    "ipam_site.http.metrics.MetricsMiddleware",
    "ipam_site.http.middleware.APILanguageMiddleware",
    "ipam_site.http.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "ipam_site.http.middleware.PageCompressionMiddleware",
    "ipam_site.http.middleware.HeadersMiddleware",
    "ipam_site.http.middleware.AdminMethodsMiddleware",
    "ipam_site.database_watch.DatabaseWatchMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    # After it: what a page of the second factor changes is committed here, and says so in a message.
    "ipam_site.sign_on.gate.ChallengeMiddleware",
    "ipam_site.sign_on.gate.SecondFactorMiddleware",
    "ipam_site.http.middleware.TimeZoneMiddleware",
    "pools.platform.admin.live.LiveMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "ipam_site.urls"
WSGI_APPLICATION = "ipam_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "ipam_site.sign_on.gate.theme",
            ],
            "libraries": {"cadastre": "pools.admin.template_library"},
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = [
    "ipam_site.sign_on.gate.Accounts",
    "ipam_site.sign_on.gate.ClusterOwners",
]
if IPAM_LDAP_URL and ldap_settings.is_installed():  # otherwise `check` fails
    AUTHENTICATION_BACKENDS.append(ldap_settings.BACKEND)
# django-allauth: second factors and OpenID Connect, without sign-up and e-mail. Its own limits are off, because
# they count in a cache that each process has for itself; pools/platform/login_limits.py counts in the database.
ACCOUNT_ADAPTER = "ipam_site.sign_on.gate.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SIGNUP_FIELDS = ["username*"]
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_LOGIN_TIMEOUT = 600  # seconds between the password and the second factor
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_RATE_LIMITS = False
MFA_ADAPTER = "ipam_site.sign_on.gate.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Cadastre"
MFA_TOTP_TOLERANCE = 1  # codes of the step before and after are accepted: clocks differ
MFA_RECOVERY_CODE_DIGITS = 16
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_RATE_LIMITS = False
MFA_FORMS = {
    "authenticate": "ipam_site.sign_on.forms.CodeForm",
    "reauthenticate": "ipam_site.sign_on.forms.CodeAgainForm",
    "authenticate_webauthn": "ipam_site.sign_on.forms.PasskeyForm",
    "login_webauthn": "ipam_site.sign_on.forms.PasskeyAloneForm",
    "reauthenticate_webauthn": "ipam_site.sign_on.forms.PasskeyAgainForm",
    "add_webauthn": "ipam_site.sign_on.forms.AddPasskeyForm",
    "edit_webauthn": "ipam_site.sign_on.forms.RenamePasskeyForm",
}
SOCIALACCOUNT_ADAPTER = "ipam_site.sign_on.oidc.DirectoryAdapter"
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10  # seconds
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The language of the whole site, whatever language a browser prefers: the register also stores texts
# (events, notes, conditions in clusters), which must be in one language.
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = ["ipam_site.formats"]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
_static = BASE_DIR / "static"
STATICFILES_DIRS = [_static] if _static.is_dir() else []
# The folder of `collectstatic`, whose files have a hash in their names and are compressed: browsers keep them
# for a year. Without it WhiteNoise serves the files of the packages, and browsers ask again after 10 minutes.
STATIC_ROOT = env.text("STATIC_ROOT") or None
if STATIC_ROOT:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
WHITENOISE_USE_FINDERS = not STATIC_ROOT
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 600

# --- database -------------------------------------------------------------------------------------

# The kind of process, which has its own statement timeout.
IPAM_ROLE = env.text("IPAM_ROLE", "command")
if IPAM_ROLE not in database_url.STATEMENT_TIMEOUT_MS:
    raise exceptions.ImproperlyConfigured("IPAM_ROLE must be web, worker, beat or command")

IPAM_SERVERS_FROM = (
    "DATABASE_URL"
    if env.secret("DATABASE_URL")
    else f"{IPAM_DATA}/connections.json, which a running `make run` writes;"
    " IPAM_DATA names another data folder, DATABASE_URL overrides it"
)
# Without a URL, commands that need no database still run; others get "connection refused".
_NOWHERE = "postgresql://127.0.0.1:1/cadastre"

# A pooler in transaction mode refuses or drops settings of a session, so that none are sent; the pooler or
# the role has to have them (ipam_site/http/health.py looks).
DB_POOLER = env.boolean("DB_POOLER", False)


DATABASES = {
    "default": database_url.entry(
        env.secret("DATABASE_URL") or _connections.get("database_url", "") or _NOWHERE,
        role=IPAM_ROLE,
        pooler=DB_POOLER,
    )
}

# --- Redis and Celery -----------------------------------------------------------------------------

REDIS_URL = env.secret("REDIS_URL") or _connections.get("redis_url", "") or "redis://127.0.0.1:1/0"

# A web request only sends messages as hints, and does not wait long for a broker that is
# unavailable or hangs.
CELERY_BROKER_URL, _broker_options = broker.celery_settings(
    REDIS_URL, seconds=1 if IPAM_ROLE == "web" else 10
)
_VISIBILITY_TIMEOUT = 600
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # An unacknowledged message is redelivered after this time. It is more than twice the hard limit
    # of a task, so that no slow task runs twice.
    "visibility_timeout": _VISIBILITY_TIMEOUT,
    # Check for such messages every 5 s; the default is 100 s.
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "health_check_interval": 25,
    **_broker_options,
    "socket_keepalive": True,
}
# Other parts of Celery read this setting: it has to be the same value.
CELERY_VISIBILITY_TIMEOUT = _VISIBILITY_TIMEOUT
# --- history --------------------------------------------------------------------------------------

# Events older than this are deleted; 0 keeps them forever.
EVENT_RETENTION_DAYS = env.integer("EVENT_RETENTION_DAYS", 0, minimum=0)
# Decisions of VM network webhooks older than this are deleted; 0 keeps them forever.
IPAM_DECISION_DAYS = env.integer("IPAM_DECISION_DAYS", 30, minimum=0)
# A block leaked if two complete observations miss its holder, at least this time apart.
IPAM_LEAK_GRACE_SECONDS = env.integer("IPAM_LEAK_GRACE_SECONDS", 900, minimum=0)
# Allow allocations of instance and public IPv4 addresses without org, env and the matching holder.
IPAM_ALLOW_UNOWNED_ALLOCATIONS = env.boolean("IPAM_ALLOW_UNOWNED_ALLOCATIONS", False)
# Number of addresses up to which VM owners may request more in a namespace of a cluster; 0 sets no limit.
IPAM_VM_OWNER_QUOTA = env.integer("IPAM_VM_OWNER_QUOTA", 0, minimum=0)
# Thresholds of alerts. Utilization of a pool in per cent; the blocks that cool, in per cent of the pool; how
# far below its threshold a share must be to end its alert.
IPAM_ALERT_WARNING_PERCENT = env.integer("IPAM_ALERT_WARNING_PERCENT", 80, minimum=1)
IPAM_ALERT_ERROR_PERCENT = env.integer("IPAM_ALERT_ERROR_PERCENT", 95, minimum=1)
IPAM_ALERT_COOLING_PERCENT = env.integer("IPAM_ALERT_COOLING_PERCENT", 20, minimum=1)
IPAM_ALERT_STEADY_PERCENT = env.integer("IPAM_ALERT_STEADY_PERCENT", 5, minimum=0)
# How long a refused allocation counts; by how much the sync of a cluster is overdue; how long no tick came.
IPAM_ALERT_REFUSAL_SECONDS = env.integer("IPAM_ALERT_REFUSAL_SECONDS", 300, minimum=1)
IPAM_ALERT_STALE_SECONDS = env.integer("IPAM_ALERT_STALE_SECONDS", 300, minimum=0)
IPAM_ALERT_SCHEDULER_SECONDS = env.integer("IPAM_ALERT_SCHEDULER_SECONDS", 60, minimum=1)
# Days before a pool is forecast to be exhausted, and before credentials of a cluster expire.
IPAM_ALERT_FORECAST_DAYS = env.integer("IPAM_ALERT_FORECAST_DAYS", 14, minimum=0)
IPAM_ALERT_CREDENTIAL_DAYS = env.integer("IPAM_ALERT_CREDENTIAL_DAYS", 14, minimum=0)
# Ended alerts and their deliveries are deleted after this number of days.
IPAM_ALERT_DAYS = env.integer("IPAM_ALERT_DAYS", 90, minimum=0)
# Public URL of this site (https://ipam.example.org), for links in webhook messages.
IPAM_URL = env.text("IPAM_URL")
if env.text("SCRIPT_NAME") or parse.urlsplit(IPAM_URL).path.strip("/"):
    raise exceptions.ImproperlyConfigured(
        "Cadastre is served at the root of a host name of its own, not below a path: unset SCRIPT_NAME, and set"
        " IPAM_URL without a path (docs/how-to/deploy.md)"
    )
# The mail server for alerts: smtp://user:password@host:587, which begins TLS, smtps://host:465, or plain smtp+plain://host.
_mail = parse.urlsplit(env.secret("EMAIL_URL"))
if _mail.scheme not in {"", "smtp", "smtps", "smtp+plain"}:
    raise exceptions.ImproperlyConfigured("EMAIL_URL must begin with smtp, smtps or smtp+plain")
EMAIL_HOST = _mail.hostname or ""
EMAIL_PORT = _mail.port or {"smtps": 465, "smtp": 587}.get(_mail.scheme, 25)
EMAIL_HOST_USER = parse.unquote(_mail.username or "")
EMAIL_HOST_PASSWORD = parse.unquote(_mail.password or "")
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.scheme == "smtp", _mail.scheme == "smtps"
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.text("IPAM_EMAIL_FROM", "cadastre@localhost")
# Allow receivers of webhooks on this machine, for tests and laptops.
IPAM_ALLOW_LOOPBACK_NETBOX = env.boolean("IPAM_ALLOW_LOOPBACK_NETBOX", False)
IPAM_ALLOW_LOOPBACK_WEBHOOKS = env.boolean("IPAM_ALLOW_LOOPBACK_WEBHOOKS", False)
# Daily samples of pools, for charts, are deleted after this number of days; 0 keeps them forever.
IPAM_SAMPLE_DAYS = env.integer("IPAM_SAMPLE_DAYS", 400, minimum=0)
# Interval at which a process adds its counters to the totals of all processes; 0: not by itself.
IPAM_MEASURE_SECONDS = env.integer("IPAM_MEASURE_SECONDS", 5)
# Token for /metrics only; without it, only users with the permission can read the metrics.
IPAM_METRICS_TOKEN = (
    env.text("IPAM_METRICS_TOKEN")
    or "".join(env.lines_of_file("IPAM_METRICS_TOKEN_FILE")[:1])
    or data_folder.secrets(IPAM_DATA).get("metrics_token", "")
)
if 0 < len(IPAM_METRICS_TOKEN) < 16:
    raise exceptions.ImproperlyConfigured("IPAM_METRICS_TOKEN must have at least 16 characters")
# Attributes of pools and clusters that are labels of their metrics: owner, tag:NAME, field:NAME.
try:
    IPAM_METRIC_LABELS = metric_labels.parse_labels(env.words("IPAM_METRIC_LABELS"))
except errors.InvalidInput as error:
    raise exceptions.ImproperlyConfigured(f"IPAM_METRIC_LABELS: {error.message}") from error
# Revision of the container image, for ipam_build_info.
IPAM_REVISION = env.text("IPAM_REVISION")
PGHISTORY_APPEND_ONLY = True
PGHISTORY_CREATED_AT_FUNCTION = "ipam_now()"  # one clock: pools/sql/clock.sql
# The context is a column of the event: one INSERT per change, and no event without a context.
PGHISTORY_CONTEXT_FIELD = pghistory.ContextJSONField()
# No implicit indexes on event tables.
PGHISTORY_FOREIGN_KEY_FIELD = pghistory.ForeignKey(db_index=False)

# --- clusters -------------------------------------------------------------------------------------

# Keys that encrypt the credentials of clusters (pools/platform/outbound/secrets.py), newest first. In
# a file, such as a mounted secret, each line is a key.
IPAM_KEY_RING: list[str] = (
    env.words("IPAM_KEY_RING")
    or env.lines_of_file("IPAM_KEY_RING_FILE")
    or data_folder.secrets(IPAM_DATA).get("key_ring", "").split()
)
# Allow clusters on this machine, for tests and laptops. On other sites it would let users who register
# clusters reach the ports of this machine.
IPAM_ALLOW_LOOPBACK_CLUSTERS = env.boolean("IPAM_ALLOW_LOOPBACK_CLUSTERS", False)
# Client certificates that may call admission webhooks: a common or alternative name for all clusters,
# or `cluster=name` for one cluster. The web server verifies certificates (`up --tls-client-ca`).
IPAM_WEBHOOK_CLIENTS = env.words("IPAM_WEBHOOK_CLIENTS")
# RoleBindings to these roles of a cluster make users VM owners of their namespace. If empty,
# RoleBindings are not read.
IPAM_VM_OWNER_ROLES = env.words(
    "IPAM_VM_OWNER_ROLES",
    [] if env.is_set("IPAM_VM_OWNER_ROLES") else ["kubevirt.io:admin", "kubevirt.io:edit"],
)
# User agent of requests to API servers, for their audit logs.
IPAM_USER_AGENT = f"cadastre/{ipam_site.__version__}"

# --- admin ----------------------------------------------------------------------------------------

UNFOLD = admin_site.UNFOLD
MENU = admin_site.MENU

# The demo fleet may be loaded on a local site: one without TLS, or one that `up` runs.
IPAM_ALLOW_DEMO = env.boolean(
    "IPAM_ALLOW_DEMO",
    DEBUG or not IPAM_HTTPS or bool(_connections and not env.secret("DATABASE_URL")),
)

LOGGING = logs.config(env.text("LOG_LEVEL", "INFO").upper())
