"""Chromium without a window, for the pages of weft dissect --html."""

import json
import os
import pathlib
import shutil
import sys
import time

SKIPPED = 77
PATIENCE = 600  # seconds; only a hang takes so long


def skip(why):
    if os.environ.get("WEFT_SKIP_IS_FAILURE"):
        sys.exit(f"FAILED: {why}")
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    skip("python3-selenium is not installed")

ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "about:blank")


class Browser:
    """One tab. It remembers what the pages logged and requested."""

    def __init__(self, scratch):
        for program in ("chromium", "chromedriver"):
            if not shutil.which(program):
                skip(f"{program} is not installed")
        os.environ["HOME"] = str(scratch)  # of the browser, which leaves files there
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in (*ARGUMENTS, f"--user-data-dir={scratch}/profile"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(PATIENCE)
        self.driver.set_script_timeout(PATIENCE)
        self.resize(1400, 900)
        # The browser's own first page logs what it likes, above all where there is no network.
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)

    def quit(self):
        self.driver.quit()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, page):
        self.driver.get(pathlib.Path(page).as_uri())
        self.wait("the page is ready", "return document.getElementById('loading') === null")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, what, script, *arguments):
        """Until the script gives something true."""
        until = time.monotonic() + PATIENCE
        while not (result := self.run(script, *arguments)):
            if time.monotonic() > until:
                rows = self.texts("#canvas .row .words")
                raise AssertionError(f"this never came true: {what}; rows: {rows[:20]}")
            time.sleep(0.02)
        return result

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        """The texts of the elements, whether they are scrolled into view or not."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def click(self, selector):
        self.find(selector).click()

    def hover(self, element):
        ActionChains(self.driver).move_to_element(element).perform()

    def keys(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def fill(self, name, text):
        field = self.find(f"#{name}")
        field.clear()
        field.send_keys(text)

    def choose(self, name, front):
        """Takes the option of a list whose text begins so, by typing."""
        self.find(f"#{name}").send_keys(front)
        self.wait(f"{front} is chosen in {name}", """const list = document.getElementById(arguments[0]);
            return list.selectedOptions[0].textContent.startsWith(arguments[1])""", name, front)

    def faults(self):
        """What the console has, and each request but the page's own."""
        lines = [f"console: {entry['message']}" for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            if any(one.startswith(("chrome:", "chrome-untrusted:")) for one in (message["params"]["documentURL"], url)):
                continue  # the browser's own first tab, and frames in it
            if not (url.startswith("file://") and message["params"]["type"] == "Document"):
                lines.append(f"request: {url}")
        return lines
