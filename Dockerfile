# Two stages: the first installs and converts the embedded model, the second carries the result and runs as nobody special.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/footnote
COPY requirements.lock /src/
RUN /opt/footnote/bin/pip install --require-hashes -r /src/requirements.lock
COPY pyproject.toml README.md LICENSE /src/
COPY app /src/app
COPY migrations /src/migrations
RUN /opt/footnote/bin/pip install --no-deps /src
# `--build-arg EXTRAS=ocr` reads scanned pages; it adds some 250 MB.
ARG EXTRAS=""
RUN if [ -n "$EXTRAS" ]; then /opt/footnote/bin/pip install "/src[$EXTRAS]"; fi
# Converted once here, so that the first start of a container takes no longer than any other.
RUN FOOTNOTE_DATA=/tmp/footnote FOOTNOTE_MODELS=/opt/footnote/models /opt/footnote/bin/footnote migrate \
    && rm -rf /tmp/footnote

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin footnote \
    && install -d -o footnote -g footnote -m 0700 /data
COPY --from=build /opt/footnote /opt/footnote
ENV PATH=/opt/footnote/bin:$PATH PYTHONUNBUFFERED=1 \
    FOOTNOTE_DATA=/data FOOTNOTE_MODELS=/opt/footnote/models FOOTNOTE_HOST=0.0.0.0
USER footnote
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
CMD ["footnote", "serve"]
