#!/bin/sh
# The part of the official PostgreSQL image's contract that Alcove leans on: POSTGRES_USER,
# POSTGRES_PASSWORD, POSTGRES_DB, POSTGRES_INITDB_ARGS (each also as NAME_FILE), PGDATA, and
# *.sh and *.sql of /docker-entrypoint-initdb.d, run once in a new cluster.
set -eu

from_file() {
  eval "value=\${$1:-} file=\${$1_FILE:-}"
  if [ -n "$value" ] && [ -n "$file" ]; then
    echo "$1 and $1_FILE are both set; keep one of them" >&2
    exit 1
  fi
  [ -z "$file" ] || value=$(cat "$file")
  eval "$1=\$value"
}

initialise() {
  for name in POSTGRES_USER POSTGRES_PASSWORD POSTGRES_DB POSTGRES_INITDB_ARGS; do from_file "$name"; done
  POSTGRES_USER=${POSTGRES_USER:-postgres}
  POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}
  if [ -z "$POSTGRES_PASSWORD" ]; then
    echo "a new cluster needs POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE" >&2
    exit 1
  fi
  export POSTGRES_USER POSTGRES_PASSWORD POSTGRES_DB
  # In a directory beside it and renamed: a cluster is either whole or not there after a kill.
  fresh="$PGDATA/.initialising"
  rm -rf "$fresh"
  mkdir -m 0700 "$fresh"
  password=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" > "$password"
  # shellcheck disable=SC2086 (the arguments are words)
  initdb --pgdata="$fresh" --username="$POSTGRES_USER" --pwfile="$password" \
         --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 $POSTGRES_INITDB_ARGS
  rm "$password"
  echo 'host all all all scram-sha-256' >> "$fresh/pg_hba.conf"
  pg_ctl --pgdata="$fresh" --wait -o "-c listen_addresses='' -c unix_socket_directories=/var/run/postgresql" start
  if [ "$POSTGRES_DB" != postgres ]; then
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  fi
  for script in /docker-entrypoint-initdb.d/*; do
    case "$script" in
      *.sh) . "$script" ;;
      *.sql) psql -v ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" -f "$script" ;;
    esac
  done
  pg_ctl --pgdata="$fresh" --wait --mode=fast stop
  for entry in "$fresh"/* ; do
    [ "$entry" = "$fresh/PG_VERSION" ] || mv "$entry" "$PGDATA/"
  done
  mv "$fresh/PG_VERSION" "$PGDATA/"
  rmdir "$fresh"
}

if [ "$1" = postgres ]; then
  chmod 0700 "$PGDATA"
  # PG_VERSION arrives last: without it the last initialisation was cut short, and begins anew.
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    find "$PGDATA" -mindepth 1 -delete
    initialise
  fi
  exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
fi
exec "$@"
