"""A server with the gateway's interface, whose events a test decides. It serves the page from the source tree and the
example documents of tests/gateway/data. Standard library only."""
import copy
import http.server
import json
import pathlib
import queue
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
WEB = ROOT / "gateway" / "web"
DATA = ROOT / "tests" / "gateway" / "data"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def document(name):
    return json.loads((DATA / f"{name}.json").read_text())


def cluster_of(devices, ranks=64):
    """A status with this number of devices, eight a node, in communicators of `ranks`."""
    status = document("status")
    node, device, communicator = status["nodes"][0], status["devices"][0], status["communicators"][0]
    rank = communicator["ranks"][0]
    nodes, all_devices, communicators = [], [], []
    for i in range(devices // 8):
        nodes.append(dict(node, name=f"node-{i}", id=i + 1, host=f"host-{i // 4}"))
    for i in range(devices):
        all_devices.append(dict(device, id=hex(i + 1), node=f"node-{i // 8}", host=f"host-{i // 32}",
                                communicators=[i // ranks + 1]))
    for c in range(devices // ranks):
        of_it = [dict(rank, rank=i, device=hex(c * ranks + i + 1), waits_for=[], round=0, rounds=2 * ranks - 2)
                 for i in range(ranks)]
        topology = dict(communicator["topology"], edges=[[i, (i + 1) % ranks] for i in range(ranks)])
        communicators.append(dict(communicator, id=c + 1, name="", causes=[], topology=topology, ranks=of_it))
    return dict(status, nodes=nodes, devices=all_devices, communicators=communicators, lost=[])


class FakeGateway:
    """Serves until `close`. Each stream of events begins with a snapshot of `status`; `send` adds events to all."""

    def __init__(self, status):
        self.status = status
        self.connections = 0
        self.streams = []
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, content, kind):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Content-Security-Policy", "default-src 'self'")
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self):
                path = self.path.split("?")[0]
                if path == "/api/v1/events":
                    return outer.serve_events(self)
                if path.startswith("/api/v1/"):
                    return self.answer((DATA / (path[8:] + ".json")).read_bytes(), "application/json")
                file = WEB / (path[1:] or "index.html")
                if file.parent != WEB or not file.is_file():
                    return self.send_error(404)
                return self.answer(file.read_bytes(), TYPES[file.suffix])

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve_events(self, to):
        stream = queue.Queue()
        with self.lock:
            self.connections += 1
            snapshot = copy.deepcopy(self.status)
            self.streams.append(stream)
        snapshot["time_ms"] = time.time() * 1e3
        to.send_response(200)
        to.send_header("Content-Type", "text/event-stream")
        to.send_header("Connection", "close")
        to.end_headers()
        try:
            item = ("snapshot", snapshot)
            while item is not None:
                to.wfile.write(f"event: {item[0]}\ndata: {json.dumps(item[1])}\n\n".encode())
                to.wfile.flush()
                item = stream.get()
        except OSError:
            pass
        to.close_connection = True

    def send(self, name, what):
        """To every open stream."""
        with self.lock:
            for stream in self.streams:
                stream.put((name, what))

    def close(self):
        with self.lock:
            for stream in self.streams:
                stream.put(None)
        self.server.shutdown()
        self.server.server_close()
