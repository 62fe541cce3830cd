#!/usr/bin/env python3
"""The gateway's page in a headless Chromium: with a fake gateway, and with a real cluster.

    page_test.py [--programs DIRECTORY] [--screenshots DIRECTORY] [TEST...]

Without --programs only the tests with a fake gateway run. Ends with status 77 if chromium or chromedriver is missing.
"""
import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from fake_gateway import FakeGateway, cluster_of, document
from webdriver import Browser

programs = None
screenshots = None

FRAMES = """return new Promise((done) => {
  let frames = 0;
  const began = performance.now();
  const next = () => { frames += 1; performance.now() - began < 3000 ? requestAnimationFrame(next) : done(frames / 3); };
  requestAnimationFrame(next);
})"""
# Clicks on the first selector, and says how many milliseconds later the text at the second one has the third argument.
UNTIL_SHOWN = """const [button, place, text] = arguments;
return new Promise((done) => {
  const shown = () => document.querySelector(place).textContent.includes(text);
  const began = performance.now();
  document.querySelector(button).click();
  const look = () => shown() || performance.now() - began > 20000 ? done(performance.now() - began) : requestAnimationFrame(look);
  look();
})"""
IS_DRAWN = """const canvas = document.querySelector(arguments[0]);
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
for (let i = 3; i < pixels.length; i += 4) if (pixels[i] !== 0) return true;
return false;"""


def picture(browser, name):
    if screenshots:
        browser.screenshot(screenshots / f"{name}.png")


class FakeGatewayTest(unittest.TestCase):
    def open(self, status, width=1280):
        self.gateway = FakeGateway(status)
        self.addCleanup(self.gateway.close)
        self.browser = Browser(width)
        self.addCleanup(self.browser.close)
        self.browser.open(self.gateway.url)
        self.browser.wait("that it is connected", "return document.querySelector('#connection').className === 'good'")

    def test_shows_the_cluster_and_names_are_text(self):
        self.open(document("status"))
        self.assertEqual(self.browser.text("#total-devices"), "12 (1 free)")
        self.gateway.send("journal", document("event_journal"))
        self.browser.wait("the hostile record", "return document.querySelector('#journal').textContent.includes('<script>alert(1)')")
        self.assertIn("<img src=x onerror=alert(1)>", self.browser.text("#communicators"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 1)    # the page's own
        self.assertEqual(self.browser.run("return document.querySelectorAll('body script').length"), 0)
        for canvas in ("#cluster", "#communicator", "#timeline", "#chart-loss"):
            self.browser.wait(f"a picture in {canvas}", IS_DRAWN, canvas)
        self.assertIn("Rank 2 (device 0x3) is waited for by ranks 0, 1 and 3 to 7", self.browser.text("#waits"))
        self.assertIn("rank 8 (device 0xd, node-3 on hostb, pid 813) crashed: killed; all_reduce #11", self.browser.text("#waits"))
        self.assertEqual(self.browser.log(), [])
        picture(self.browser, "fake-1280")

    def test_fits_wide_and_narrow_windows_in_dark_and_light(self):
        self.open(document("status"))
        for width in (1280, 400):
            self.browser.command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            for scheme in ("light", "dark"):
                self.browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                self.browser.wait(f"no wider than {width} pixels", "return document.documentElement.scrollWidth <= innerWidth")
                background = self.browser.run("return getComputedStyle(document.body).backgroundColor")
                brightness = sum(int(x) for x in re.findall(r"\d+", background)[:3])
                self.assertEqual(brightness > 384, scheme == "light", background)
                picture(self.browser, f"fake-{width}-{scheme}")

    def test_follows_changes_and_asks_again_where_one_is_missing(self):
        status = document("status")
        self.open(status)
        delta = dict(document("event_delta"), base=status["version"], version=status["version"] + 1)
        self.gateway.send("delta", delta)
        self.browser.wait("that a device is gone and none is free", "return document.querySelector('#total-devices').textContent === '11 (0 free)'")
        self.assertEqual(self.gateway.connections, 1)
        self.gateway.send("delta", dict(delta, base=999))
        self.browser.wait("the snapshot again", "return document.querySelector('#total-devices').textContent === '12 (1 free)'")
        self.assertEqual(self.gateway.connections, 2)

    def test_replays_an_operation_that_ends_after_the_frame_began(self):
        self.open(document("status"))
        label = self.browser.run("""const { CommunicatorView } = await import("/communicator_view.js");
            const [canvas, text] = [document.createElement("canvas"), document.createElement("p")];
            const view = new CommunicatorView(canvas, text, { get: async () => ({ rounds: [[[0, 1]], [[1, 0]]] }) });
            view.show({ id: "9", ranks: [0, 1].map((rank) => ({ rank, waits_for: [] })), operations: [], causes: [],
                        topology: { shape: "ring", algorithm: "ring", edges: [[0, 1], [1, 0]] } });
            const ended = { communicator: "9", record: { operation_ended: { kind: "ALL_REDUCE", algorithm: "ring",
                        started_ns: "0", ended_ns: "1000", world_size: 2, sequence: 3 } } };
            view.ended(ended);      // asks for the rounds
            await new Promise((done) => setTimeout(done, 0));
            view.replay = null;
            view.ended(ended);
            view.draw(performance.now() - 50);
            return text.textContent""")
        self.assertIn("Replay of operation 3: ring all_reduce", label)

    def test_draws_1024_devices_at_30_frames_a_second(self):
        status = cluster_of(1024)
        self.open(status)
        stop = threading.Event()
        self.addCleanup(stop.set)

        def change():
            version = status["version"]
            while not stop.wait(0.25):
                ranks = [{"communicator": c["id"], "all": False,
                          "ranks": [dict(r, round=version % 126) for r in c["ranks"]]} for c in status["communicators"]]
                self.gateway.send("delta", {"base": version, "version": version + 1, "time_ms": time.time() * 1e3, "ranks": ranks})
                version += 1
        threading.Thread(target=change, daemon=True).start()
        # Busy machines drop frames: the best of some tries counts.
        self.assertGreaterEqual(max(self.browser.run(FRAMES) for _ in range(4)), 30)
        picture(self.browser, "fake-1024")

    def test_an_hour_of_events_leaves_nothing(self):
        status = document("status")
        self.open(status)
        version, event = status["version"], document("event_journal")
        measure = "return [performance.memory.usedJSHeapSize / 1048576, document.getElementsByTagName('*').length]"

        def play(events):
            nonlocal version
            for _ in range(events):
                self.gateway.send("delta", dict(changed, base=version, version=version + 1, time_ms=time.time() * 1e3))
                version += 1
                for record in event["records"]:
                    record["index"] += 2
                self.gateway.send("journal", event)
                if version % 200 == 0:    # the page must not fall far back
                    self.browser.wait(
                        "the changes", f"return Number(document.documentElement.dataset.version) >= {version - 200}", seconds=120)
            self.browser.wait("the last event", f"return document.documentElement.dataset.version === '{version}'", seconds=120)
            self.browser.command("HeapProfiler.collectGarbage")
            return self.browser.run(measure)

        changed = {key: document("event_delta")[key] for key in ("rates", "queues", "communicators")}
        before = play(2400)     # ten minutes
        after = play(12000)     # fifty more
        self.assertLess(after[0], before[0] * 1.5 + 10, "MiB of objects")
        self.assertLessEqual(after[1], before[1] + 50, "elements")


class ClusterTest(unittest.TestCase):
    """The demo: a cluster, a loop of all-reduces, a training and the gateway, each a process."""

    def test_a_running_cluster_and_a_kill_by_the_button(self):
        demo = subprocess.Popen([programs / "ringmaster", "demo", "--web"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(end, demo)
        url = address_of(demo)
        browser = Browser(1280, 1400)
        self.addCleanup(browser.close)
        browser.open(url)
        browser.wait("that it is connected", "return document.querySelector('#connection').className === 'good'")
        self.assertNotIn("token", browser.run("return location.href"))
        browser.wait("all-reduces", "return /all_reduce/.test(document.querySelector('#journal').textContent)")
        browser.wait("a rate", "return Number(document.querySelector('#total-operations').textContent.split(' ')[0]) > 0")
        steps = "const found = /step (\\d+)/.exec(document.querySelector('#runs').textContent); return found ? Number(found[1]) + 1 : 0"
        first = browser.wait("a training", steps, seconds=60)
        browser.wait("that its curve grows", f"return (() => {{ {steps} }})() > {first}", seconds=60)
        for canvas in ("#cluster", "#communicator", "#timeline", "#chart-loss", "#rate-operations"):
            browser.wait(f"a picture in {canvas}", IS_DRAWN, canvas)
        picture(browser, "cluster-before")

        epochs = "return document.querySelectorAll('#timeline-list li[data-what=epoch]').length"
        before = browser.run(epochs)
        victim = browser.wait("a device in a communicator", """return fetch('api/v1/status').then((r) => r.json())
            .then((status) => status.communicators.filter((c) => c.policy === 'shrink' && c.ranks.length > 2).map((c) => c.ranks.at(-1).device)[0] ?? '')""")
        browser.type("#device", victim + "\n")
        browser.wait("that it can be killed", "return !document.querySelector('#kill').disabled")
        browser.click("#kill")
        # The page follows changes within half a second; the bound is for busy machines.
        self.assertLess(browser.run(UNTIL_SHOWN, "#confirm-yes", "#timeline-list", f"device {victim} died"), 2000)
        browser.wait("a new epoch", f"return (() => {{ {epochs} }})() > {before}", seconds=30)
        browser.wait("the loss", "return /" + victim + " .*died/.test(document.querySelector('#timeline-list').textContent)")
        time.sleep(0.5)     # for the picture only
        picture(browser, "cluster-after")
        self.assertEqual([line for line in browser.log() if "favicon" not in line], [])


def address_of(demo, seconds=60):
    found = []

    def read():
        for line in demo.stdout:
            if match := re.search(r"http://\S+", line):
                found.append(match.group(0))
    threading.Thread(target=read, daemon=True).start()
    end_at = time.monotonic() + seconds
    while not found:
        if demo.poll() is not None or time.monotonic() > end_at:
            raise AssertionError(f"the demo printed no address within {seconds} s; its exit status is {demo.poll()}")
        time.sleep(0.05)
    return found[0]


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main():
    global programs, screenshots
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    programs, screenshots = options.programs, options.screenshots
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if missing:
        print(f"skipped: {' and '.join(missing)} missing; Debian's packages are chromium and chromium-driver")
        sys.exit(77)
    if screenshots:
        screenshots.mkdir(parents=True, exist_ok=True)
    tests = options.tests or ["FakeGatewayTest"] + (["ClusterTest"] if programs else [])
    unittest.main(argv=[sys.argv[0], "-v", *tests])


if __name__ == "__main__":
    main()
