"""Lighthouse on the built site, served as a publisher would: from loopback, compressed.

    python -m tests.benchmarks.lighthouse                           # the heaviest page, as a phone and as a desktop
    python -m tests.benchmarks.lighthouse book/data-parallel/buckets.html

It needs node, Chromium and `make book`; npx fetches Lighthouse, or LIGHTHOUSE names the command. The score of
performance is that of the machine, too: it counts only where nothing else runs.
"""

import functools
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HTML = Path(__file__).parents[2] / "_build" / "book" / "html"
LOADED = re.compile(r'<(?:img|script|link)\b[^>]*?\s(?:src|href)="([^":]+\.(?:png|svg|js|css))(?:\?[^"]*)?"')
TEXT = {".html", ".css", ".js", ".svg"}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = "--headless=new --no-sandbox --disable-gpu"
WRITTEN = ["--quiet", "--output=json"]
KINDS = {"phone": [], "desktop": ["--preset=desktop"]}  # Lighthouse's own throttling is simulated in both


@functools.cache
def compressed(path):
    """The bytes of a file as they are sent."""
    body = path.read_bytes()
    return gzip.compress(body, mtime=0) if path.suffix in TEXT else body


def weight(page):
    """The bytes of a page with its frame and all its pictures in the light theme."""
    files = {(page.parent / name).resolve() for name in LOADED.findall(page.read_text(encoding="utf-8"))}
    light = {file for file in files if file.is_file() and not file.name.endswith("-dark.png")}
    return sum(len(compressed(file)) for file in {page.resolve(), *light})


class Compressing(SimpleHTTPRequestHandler):
    """A static server whose text is compressed, on connections that stay open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Send a file."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        body = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=31536000" if "?" in self.path else "max-age=600")
        if path.suffix in TEXT:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said):
        """Say nothing."""


def told(address, kind, folder):
    """What Lighthouse says of an address, as it stores it."""
    kept = Path(folder) / f"{kind}.json"
    command = os.environ.get("LIGHTHOUSE", "npx --yes lighthouse").split()
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), "")
    subprocess.run(
        [*command, address, *KINDS[kind], *WRITTEN, f"--output-path={kept}", f"--chrome-flags={FLAGS}"],
        env={"CHROME_PATH": chromium, **os.environ}, check=True, timeout=900,
    )  # fmt: skip
    return json.loads(kept.read_text(encoding="utf-8"))


def main(names):
    """Print the heaviest pages, and the scores and what is below 1 of each page named, or of the heaviest."""
    weights = sorted(((weight(page), page) for page in HTML.glob("book/**/*.html")), reverse=True)
    for bytes_, page in weights[:5]:
        print(f"{bytes_:>9,} bytes  {page.relative_to(HTML)}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Compressing, directory=str(HTML)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [str(weights[0][1].relative_to(HTML))]:
            for kind in KINDS:
                report = told(f"http://127.0.0.1:{server.server_port}/{name}", kind, folder)
                scores = {key: round(100 * (found["score"] or 0)) for key, found in report["categories"].items()}
                print(f"{name}, {kind}: {scores}")
                for key, audit in report["audits"].items():
                    if audit["score"] is not None and audit["score"] < 1:
                        print(f"    {audit['score']:.2f}  {key}  {audit.get('displayValue', '')}")


if __name__ == "__main__":
    main(sys.argv[1:])
