"""A page as a browser would split it, and a real browser to open it in.

The browser is driven by WebDriver: `chromedriver` over HTTP, with the standard library alone. Where
Chromium or its driver is missing its tests are skipped: `apt-get install chromium chromium-driver`.
"""

import json
import re
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from html.parser import HTMLParser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage "
    "--disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
).split()
KEYS = {"left": "\ue012", "up": "\ue013", "right": "\ue014", "down": "\ue015", "end": "\ue010"}


class Reader(HTMLParser):
    """Tags, attributes and scripts of a page, as a browser would split it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.scripts, self.inside = [], [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        self.addresses += [v for k, v in attrs if k in ("src", "href", "data", "action")]
        self.inside = found.get("id", "code") if tag == "script" else None

    def handle_data(self, data):
        if self.inside:
            self.scripts[self.inside] = self.scripts.get(self.inside, "") + data


class Browser:
    """As much of WebDriver as the tests need."""

    def __init__(self, address, profile):
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        self.address = address
        options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.ask("/session", capabilities={"alwaysMatch": capabilities})
        self.address += f"/session/{session['sessionId']}"

    def ask(self, path, **body):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode())
        with self.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def quit(self):
        request = urllib.request.Request(self.address, method="DELETE")
        with self.open(request, timeout=60):
            pass

    def run(self, script, *arguments):
        return self.ask("/execute/sync", script=script, args=list(arguments))

    def devtools(self, command, **parameters):
        return self.ask("/goog/cdp/execute", cmd=command, params=parameters)

    def visit(self, path, width=1100, height=900, **media):
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        media = {"prefers_reduced_motion": "reduce"} | media  # no page that moves under a click
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in media.items()]
        self.devtools("Emulation.setEmulatedMedia", media="", features=features)
        self.errors()
        self.ask("/url", url=path.as_uri())

    def errors(self):
        """What the console complained about since last asked."""
        found = self.ask("/se/log", type="browser")
        return [line["message"] for line in found if line["level"] in ("SEVERE", "WARNING")]

    def find(self, selector):
        return next(iter(self.ask("/element", using="css selector", value=selector).values()))

    def click(self, selector):
        self.ask(f"/element/{self.find(selector)}/click")

    def type(self, selector, *keys):
        text = "".join(KEYS.get(key, key) for key in keys)
        self.ask(f"/element/{self.find(selector)}/value", text=text)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def markup(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerHTML", selector)

    def values(self, selector):
        """Exact numbers behind what is shown."""
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.dataset.value)"
        return [float(v) if v else None for v in self.run(script, f"{selector} [data-value]")]

    def choose(self, selector, index):
        self.run(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event(s.tagName === 'SELECT' ? 'change' : 'input'))",
            selector,
            str(index),
        )

    def visible(self, selector):
        return self.run(
            "return document.querySelector(arguments[0]).getClientRects().length > 0", selector
        )


@contextmanager
def driver_process():
    process = subprocess.Popen(
        [str(DRIVER), "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if found := re.search(r"started successfully on port (\d+)", process.stdout.readline()):
                yield f"http://127.0.0.1:{found[1]}"
                break
    finally:
        process.terminate()
        process.communicate(timeout=30)
