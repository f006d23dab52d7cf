"""Stands for the VO's services of DIRAC in a pool: a matcher that has some payloads, and others that take any word.

DIRAC's own client calls it on loopback. Arguments: its port, the file in which it writes down what it is asked, and
payloads as JSON, each the answer to one request for a job. Afterwards there is no match.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_NO_MATCH = {"OK": False, "Errno": 1552, "Message": "No match found"}


class Services(BaseHTTPRequestHandler):
    """All services at once."""

    payloads: list[object] = []  # noqa: RUF012 - one for all requests
    log = ""

    def do_POST(self) -> None:
        """Answer one call, and write down its time, its name and its arguments."""
        asked = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        method, words = asked["method"][0], asked.get("args", ["[]"])[0]
        with open(self.log, "a", encoding="ascii") as stream:
            stream.write(f"{method} {int(time.time())} {json.dumps(json.loads(words))}\n")
        answer: object = {"OK": True, "Value": {} if method == "getJobsStatus" else ""}
        if method == "requestJob":
            answer = {"OK": True, "Value": self.payloads.pop(0)} if self.payloads else _NO_MATCH
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Services.log, Services.payloads = sys.argv[2], json.loads(sys.argv[3])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Services).serve_forever()
