"""A small client of the WebDriver protocol (W3C), for Debian's chromium-driver. Standard library only."""
import base64
import json
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"    # the key that the standard gives to references to elements
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-dev-shm-usage", "--no-first-run", "--enable-precise-memory-info"]


class Browser:
    """A headless Chromium with a new profile. `with` ends it."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="ringmaster-browser-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            self.base = f"http://127.0.0.1:{self._port()}"
            flags = FLAGS + [f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}"]
            options = {"args": flags, "binary": "/usr/bin/chromium"}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            self.session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.session:
            try:
                self._call("DELETE", "")
            except (OSError, RuntimeError):
                pass
            self.session = None
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    def _port(self):
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found.group(1))
        raise RuntimeError("chromedriver ended before it named its port")

    def _call(self, method, path, body=None):
        session = f"/session/{self.session}" if self.session else ""
        data = json.dumps(body).encode() if body is not None else (b"{}" if method == "POST" else None)
        request = urllib.request.Request(self.base + session + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message'].splitlines()[0]}") from None

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value of `script`, the body of a function."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, what, script, *arguments, seconds=20):
        """The first value of `script` that is true; `what` says in the error what did not happen."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"within {seconds} s the page did not show {what}; its log: {self.log()}")
            time.sleep(0.05)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def click(self, selector):
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self._call("POST", f"/element/{found}/click")

    def type(self, selector, text):
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self._call("POST", f"/element/{found}/value", {"text": text})

    def resize(self, width, height):
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def command(self, name, **parameters):
        """A command of Chromium's DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def log(self):
        """Messages of the console since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, file):
        pathlib.Path(file).write_bytes(base64.b64decode(self._call("GET", "/screenshot")))
