# Gateway, spawner, metering_proxy and their migrations: one image, four commands.
# Context: the root of the repository. The pages are built in a stage of their own, so that nothing
# but Docker is needed on the host.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE} AS pages
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt PATH=/opt/node/bin:/usr/local/bin:/usr/bin:/bin
ARG PIP_INDEX_URL
COPY requirements/node.lock /tmp/node.lock
RUN python3 -m venv /opt/node \
 && python -m pip install --quiet --no-cache-dir --require-hashes --no-deps -r /tmp/node.lock
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY gateway ./gateway
RUN node gateway/static/build.mjs

FROM ${BASE}
# Uids of the services, the group that may reach sockets, and the places where volumes are mounted:
# a new volume takes owner and mode from here.
RUN groupadd --gid 10001 alcove \
 && for user in gateway:10011 spawner:10012 meter:10013; do \
      useradd --uid "${user#*:}" --gid 10001 --no-create-home --home-dir /nonexistent \
              --shell /usr/sbin/nologin "${user%:*}" || exit 1; \
    done \
 && install -d -m 0755 /run/alcove \
 && install -d -o 10012 -g 10001 -m 2771 /run/alcove/sockets \
 && install -d -o 10012 -g 10001 -m 2770 /run/alcove/control

ARG PIP_INDEX_URL
COPY requirements/run.lock /tmp/run.lock
RUN python3 -m venv /opt/alcove \
 && /opt/alcove/bin/python -m pip install --quiet --no-cache-dir --require-hashes -r /tmp/run.lock \
 && /opt/alcove/bin/python -m pip uninstall --quiet --yes setuptools pip \
 && rm /tmp/run.lock

COPY infra/__init__.py /app/infra/__init__.py
COPY infra/images/healthcheck.py /app/infra/images/healthcheck.py
COPY infra/kit /app/infra/kit
COPY metering_proxy /app/metering_proxy
COPY spawner /app/spawner
COPY gateway /app/gateway
COPY --from=pages /app/gateway/static/dist /app/gateway/static/dist
# The clone's umask may have been strict; the services are not its owner.
RUN chmod -R a+rX /app && /opt/alcove/bin/python -m compileall -q /app

ENV PATH=/opt/alcove/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app
USER 10011:10001
