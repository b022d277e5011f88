# PostgreSQL: Debian's package on our base, or the official image: set POSTGRES to its name
# (postgres:15-bookworm; same major version, uid and PGDATA, so the volume fits both).
ARG BASE=python:3.11-slim-bookworm
ARG POSTGRES=standin

FROM ${BASE} AS standin
# The user first, with the official image's ids; and no cluster yet: the entrypoint makes it in PGDATA.
RUN groupadd --gid 999 postgres \
 && useradd --uid 999 --gid 999 --no-create-home --home-dir /var/lib/postgresql --shell /bin/sh postgres \
 && mkdir -p /etc/postgresql-common \
 && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o 999 -g 999 -m 1777 /var/lib/postgresql/data \
 && install -d -o 999 -g 999 -m 2775 /var/run/postgresql \
 && install -d /docker-entrypoint-initdb.d
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PGDATA=/var/lib/postgresql/data
COPY infra/images/postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
RUN chmod 0755 /usr/local/bin/docker-entrypoint.sh
STOPSIGNAL SIGINT
EXPOSE 5432
ENTRYPOINT ["/usr/local/bin/docker-entrypoint.sh"]
CMD ["postgres"]

FROM ${POSTGRES}
USER root
COPY infra/images/postgres-roles.sh /docker-entrypoint-initdb.d/roles.sh
RUN chmod 0644 /docker-entrypoint-initdb.d/roles.sh
USER 999:999
