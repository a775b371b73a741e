"""A chat endpoint as a team without Rust may have it: prints its port, and tells at /seen what came."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = []
lock = threading.Lock()
go = threading.Semaphore(0)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/seen":
            with lock:
                self.answer(200, json.dumps(seen).encode(), [])
        elif self.path == "/go":
            go.release()
            self.answer(200, b"", [])
        elif self.headers.get("Upgrade"):
            self.echo()
        else:
            self.do_POST()

    def do_POST(self):
        body = self.body()
        with lock:
            seen.append(
                {
                    "method": self.command,
                    "path": self.path,
                    "headers": [[name.lower(), value] for name, value in self.headers.items()],
                    "body": body.decode("utf-8", "replace") if len(body) < 100_000 else "",
                    "length": len(body),
                }
            )
            number = len(seen)
        said = self.headers.get("x-do", "")
        if said.startswith("slow"):
            time.sleep(float(said.split()[1]))
        if said == "fail":
            self.answer(500, b"no", [])
        elif said == "events":
            self.events()
        elif said == "hints":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n")
            self.answer(200, b"after hints", [])
        else:
            fields = [
                ("x-number", str(number)),
                ("Connection", "x-hop"),
                ("x-hop", "mine"),
                ("Keep-Alive", "timeout=5"),
                ("x-line", "1"),
                ("x-line", "2"),
            ]
            self.answer(201, b"handled " + body[:100], fields)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status, body, fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self):
        """Two events. The second is made when somebody has asked for /go."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in (b"data: one\n\n", b"data: two\n\n"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
            if b"one" in event:
                go.acquire()
        self.wfile.write(b"0\r\n\r\n")

    def echo(self):
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.end_headers()
        while byte := self.rfile.read(1):
            self.wfile.write(byte)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Endpoint)
print(server.server_port, flush=True)
# Ends with the test: its standard input closes then.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
