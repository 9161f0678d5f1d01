# examples/pytorch as an image; docs/pytorch-function.md says how it is run. From the project's
# folder, after `make`:
#
#   docker build -f docker/pytorch-function.Dockerfile -t pytorch-function .

FROM python:3.11-slim AS packages
RUN python -m venv /venv
COPY examples/pytorch/requirements.txt /tmp/
RUN /venv/bin/pip install --no-cache-dir -r /tmp/requirements.txt
# All that an image does to adopt Torpor. In this stage, so that the libraries of NVIDIA's that are
# not used any more are in no layer of the image.
COPY build/lib/torpor/client docker/adopt_torpor.sh /opt/torpor/client/
RUN /opt/torpor/client/adopt_torpor.sh /opt/torpor/client /venv

FROM python:3.11-slim
COPY --from=packages /opt/torpor /opt/torpor
COPY --from=packages /venv /venv
COPY examples/pytorch /function
# For programs that look for the driver themselves, as Triton does.
ENV PATH=/venv/bin:$PATH LD_LIBRARY_PATH=/opt/torpor/client
USER nobody
EXPOSE 8080
HEALTHCHECK --interval=5s --start-period=60s CMD \
  ["python", "-c", "import urllib.request; urllib.request.urlopen('http://localhost:8080/healthz')"]
ENTRYPOINT ["python", "/function/embedding_server.py", "--host", "0.0.0.0", "--port", "8080"]
