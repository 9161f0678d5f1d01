"""What makes a Python function a service: JSON in, JSON out, by the standard library's HTTP server."""

import argparse
import concurrent.futures
import http.server
import json

MOST_BODY_BYTES = 1 << 20


class BadRequest(Exception):
    """What the client should mend."""


def flags(description):
    """A parser of the flags that every service has."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="default: any; it is printed on stdout")
    parser.add_argument("--device", default="cuda", help="cuda (the default) or cpu")
    return parser


def serve(host, port, set_up):
    """Calls `set_up`, then listens, tells so on stdout and serves until the process ends.

    `set_up` returns a function for each path that takes POST, from the request to the answer, both
    as JSON has them. GET /healthz is answered 200.
    """
    # One thread does all that computes: PyTorch keeps a cuBLAS handle, with its workspace, for each.
    worker = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    answers = worker.submit(set_up).result()
    server = _Server((host, port), _Handler)
    server.answers = answers
    server.worker = worker
    print("listening on {}:{}".format(*server.server_address[:2]), flush=True)
    server.serve_forever()


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else an answer's body waits for its header's acknowledgement

    def do_GET(self):
        if self.path == "/healthz":
            self._reply(200, {"status": "ok"})
        else:
            self._reply(404, {"error": "no such path; try GET /healthz"})

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            self.close_connection = True  # the body is not read
            self._reply(413, {"error": f"a Content-Length of at most {MOST_BODY_BYTES} is needed"})
            return
        body = self.rfile.read(int(length))
        answer = self.server.answers.get(self.path)
        if answer is None:
            paths = ", ".join(sorted(self.server.answers))
            self._reply(404, {"error": f"no such path; try POST {paths}"})
            return
        try:
            self._reply(200, self.server.worker.submit(answer, _parsed(body)).result())
        except BadRequest as error:
            self._reply(400, {"error": str(error)})
        except RuntimeError as error:  # PyTorch's, CUDA's among them
            self.log_error("%s", error)
            self._reply(500, {"error": str(error)})

    def _reply(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        """An answer is not worth a line."""


def _parsed(body):
    try:
        return json.loads(body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
