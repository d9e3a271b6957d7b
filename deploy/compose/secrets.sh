#!/bin/sh
# Makes the secrets of compose.yaml, once: what is there already stays as it is.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

keep() { # a file's name; its content from the standard input
    if [ -e "secrets/$1" ]; then cat >/dev/null; else
        cat >"secrets/$1"
        # Read by the containers' accounts through a mount; the folder keeps everybody else out.
        chmod 0444 "secrets/$1"
    fi
}

openssl rand -base64 48 | tr -d '\n/+=' | keep secret_key
openssl rand -base64 32 | keep key_ring
openssl rand -hex 24 | keep postgres_password
openssl rand -hex 24 | keep redis_password
printf 'postgresql://cadastre:%s@postgres:5432/cadastre\n' "$(cat secrets/postgres_password)" | keep database_url
printf 'redis://:%s@redis:6379/0\n' "$(cat secrets/redis_password)" | keep redis_url
printf 'requirepass %s\n' "$(cat secrets/redis_password)" | keep redis.conf
echo "deploy/compose/secrets is complete. Keep a copy of key_ring apart from the database's backups."
