#!/usr/bin/python3
"""Opens pages of weft dissect --html in Chromium and uses them as their reader does.

usage: page_test.py WEFT CASE
CASE is the name of a function below whose name begins with case_, without that.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from browser import Browser
from conversation import CLIENT, SERVER, Capture, connect, lookup, read
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

MOST_ROWS = 120  # in the document, whatever the capture has
HOSTILE = (b"</script><img src=x onerror=alert(1)>", b"<!--<script>", b"\"'><svg onload=alert(1)>", b"\xe2\x80\xa8]]>",
           b"${alert(1)}`\\u003c")

# The page's own luminance, and the ratio between text and page (WCAG 2.1).
LUMINANCES = """
    const luminance = (color) => {
      const [r, g, b] = color.match(/[\\d.]+/g).map(Number)
        .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const style = getComputedStyle(document.body);
    const [text, page] = [luminance(style.color), luminance(style.backgroundColor)];
    return [page, (Math.max(text, page) + 0.05) / (Math.min(text, page) + 0.05)];"""


def expect(what, shown, wanted):
    if shown != wanted:
        raise AssertionError(f"{what}: {shown!r} instead of {wanted!r}")


class Test:
    def __init__(self, weft, scratch):
        self.weft = weft
        self.scratch = pathlib.Path(scratch)
        self.browser = Browser(scratch)

    def page_of(self, capture, name="capture.pcap"):
        file = self.scratch / name
        page = self.scratch / "page.html"
        capture.write(file)
        made = subprocess.run([self.weft, "dissect", "--html", page, file], capture_output=True, text=True, timeout=300)
        expect("exit status", (made.returncode, made.stdout), (0, ""))
        print(made.stderr.strip())
        return page

    def open(self, capture, **name):
        self.browser.open(self.page_of(capture, **name))

    def rows(self):
        return self.browser.texts("#canvas .row .words")

    def row(self, words):
        """The row whose headline begins so."""
        row = self.browser.run("""return [...document.querySelectorAll('#canvas .row')]
            .find(row => row.querySelector('.words').textContent.startsWith(arguments[0]))""", words)
        if row is None:
            raise AssertionError(f"no row begins with {words!r} among {self.rows()}")
        return row

    def wait_for_rows(self, wanted):
        """Until the rows begin with these words, one for one."""
        self.browser.wait(f"rows are {wanted}", """
            const rows = [...document.querySelectorAll('#canvas .row')]
              .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))
              .map(row => row.querySelector('.words').textContent);
            return rows.length === arguments[0].length && rows.every((row, i) => row.startsWith(arguments[0][i]));
            """, wanted)

    def field(self, name):
        row = self.browser.run("""return [...document.querySelectorAll('.fields tr')]
            .find(row => row.querySelector('th').textContent === arguments[0])""", name)
        if row is None:
            raise AssertionError(f"no field {name}")
        return row

    def expect_colours(self, dark):
        """The page is dark or light, and its text can be read: the contrast of WCAG 2.1 is 7 at least."""
        luminance, contrast = self.browser.run(LUMINANCES)
        expect("dark", luminance < 0.2, dark)
        expect(f"contrast {contrast} is enough", contrast >= 7, True)

    def marked_octets(self):
        return " ".join(self.browser.texts(".hex-octets .byte.marked"))


def usual():
    """Two connections: a LOOKUP and two READs in the first one, a LOOKUP in the second one."""
    capture = Capture()
    first = connect(capture)
    lookup(first, 0x11112222, b"some-file")
    read(first, 0x33334444, 0xABCD0001, bytes(range(200)))
    read(first, 0x33334445, 0xABCD0002, bytes(5000))
    lookup(connect(capture), 0x55556666, b"other-file")
    return capture


def case_message(test):
    """A click shows the layers and the octets; fields and octets lead to each other."""
    test.open(usual())
    browser = test.browser
    test.row("CALL NFSv3 LOOKUP").click()
    layers = [text for text in browser.texts(".layer h3")]
    expect("layers", layers, ["RPC", "RPC-over-RDMA", "RDMAP", "DDP", "MPA"])
    browser.hover(test.field("rdma_xid"))
    expect("octets of rdma_xid", test.marked_octets(), "11 11 22 22")
    test.field("rdma_credit").click()
    expect("octets of rdma_credit", test.marked_octets(), "00 00 00 20")
    # The 5th octet of the FPDU is the first one of the STag-shaped field of an untagged header; 2 + 6 is QN.
    browser.hover(browser.driver.find_elements(By.CSS_SELECTOR, ".hex-octets .byte")[2 + 10])
    expect("the field under the pointer", [name for name in browser.texts(".fields tr.marked th")], ["MSN"])
    browser.hover(browser.driver.find_elements(By.CSS_SELECTOR, ".hex-octets .byte")[2])
    expect("fields that share an octet", browser.texts(".fields tr.marked th"), ["T (tagged)", "L (last)", "Resrv", "DV"])
    # Of a long tagged segment, the page keeps the front, and says so.
    test.row("RDMA Write, STag 0xabcd0002").click()
    expect("octets kept", len(browser.texts(".hex-octets .byte")), 96)
    hint = "".join(browser.texts("#octets .hint"))
    expect("what is said of the others", hint.startswith("96 of 5,020 bytes."), True)


def case_rpc(test):
    """A READ is joined with its RDMA Write and its Reply."""
    test.open(usual())
    browser = test.browser
    test.row("CALL NFSv3 READ").click()
    expect("joined rows", len(browser.texts("#canvas .row.joined")), 3)
    facts = browser.texts(".rpc .facts")[0]
    expect("facts", re.sub(r"[\d.]+ .s", "T", facts), "XID 0x33334444, answered after T, 200 B by RDMA Write")
    expect("messages", [re.split(r"[ ,]", text)[0] for text in browser.texts(".rpc-message .words")],
           ["CALL", "RDMA", "REPLY"])
    browser.keys("]")
    expect("the next message of the RPC", browser.texts("#layers h2")[0].split(",")[0], "RDMA Write")
    browser.driver.find_elements(By.CSS_SELECTOR, ".rpc-message")[2].click()
    expect("a click in the list", browser.texts("#layers h2")[0].split(",")[0], "REPLY NFSv3 READ NFS3_OK")
    expect("plots", browser.texts(".plot figcaption strong"), ["Throughput", "Outstanding", "Credits"])
    expect("the most of each", browser.texts(".plot .most")[1:], ["max 1", "max 32"])


def case_filters(test):
    test.open(usual())
    browser = test.browser
    browser.fill("xid", "0x33334444")
    test.wait_for_rows(["CALL NFSv3 READ", "RDMA Write, STag 0xabcd0001", "REPLY NFSv3 READ"])
    browser.fill("xid", str(0x55556666))
    test.wait_for_rows(["CALL NFSv3 LOOKUP", "REPLY NFSv3 LOOKUP"])
    browser.click("#clear")
    browser.fill("stag", "0xabcd0002")
    test.wait_for_rows(["CALL NFSv3 READ", "RDMA Write, STag 0xabcd0002", "REPLY NFSv3 READ"])
    browser.click("#clear")
    browser.fill("text", "SOME-file")
    test.wait_for_rows(["CALL NFSv3 LOOKUP fh"])
    browser.click("#clear")
    browser.choose("layer", "MPA")
    test.wait_for_rows(["MPA Request", "MPA Reply"] * 2)
    browser.choose("connection", "2:")
    test.wait_for_rows(["MPA Request", "MPA Reply"])
    browser.click("#clear")
    browser.click(".kind.call")
    test.wait_for_rows(["MPA Request", "MPA Reply", "REPLY", "RDMA Write", "REPLY", "RDMA Write", "REPLY",
                        "MPA Request", "MPA Reply", "REPLY"])


def case_ladder(test):
    """Time is to scale, or compact; violations and Terminates stand out. The Terminate lacks the header of the message."""
    capture = Capture()
    connection = connect(capture)
    lookup(connection, 1, b"a")
    connection.msn[CLIENT] += 1  # MSN 2 is missing
    lookup(connection, 2, b"b")
    connection.ulpdu(SERVER, b"\x41\x47" + bytes(4) + (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(4) +
                     b"\x12\x05\x00\x00")
    test.open(capture)
    browser = test.browser
    expect("violations", browser.texts("#canvas .row .mark"), ["DDP-7.1-09", "RDMAP-7.1-03 DDP-7.2-12"])
    expect("Terminates", len(browser.texts("#canvas .row.terminate")), 1)
    expect("arrows", browser.run("""return [...document.querySelectorAll('.row')]
             .map(row => row.classList.contains('from-server') ? '<' : '>').join('')"""), "><><><<")
    # Packets are a millisecond apart.
    tops = "return [...document.querySelectorAll('.row .lane')].map(lane => lane.getBoundingClientRect().top)"
    places = browser.run(tops)
    steps = [round(after - before) for before, after in zip(places, places[1:])]
    expect("the same space for the same time", len(set(steps)), 1)
    expect("space", steps[0] > 30, True)
    browser.choose("mode", "compact")
    places = browser.run(tops)
    expect("rows without space", {round(after - before) for before, after in zip(places, places[1:])}, {24})
    expect("what is said of it", "idle times above" in browser.texts("#scale")[0], True)
    browser.find("#violations").click()
    test.wait_for_rows(["CALL NFSv3 LOOKUP", "Terminate"])
    browser.find("#canvas .row").click()
    expect("the violation", browser.texts(".finding strong"), ["DDP-7.1-09 "])
    browser.find(".finding").click()
    expect("its bytes", test.marked_octets(), "00 00 00 03")


def case_keyboard(test):
    test.open(usual())
    browser = test.browser

    def chosen():
        return int(browser.find("#canvas .row[aria-selected=true]").get_attribute("data-message"))

    browser.keys("j", "j", Keys.ARROW_DOWN)
    expect("three messages on", chosen(), 2)
    browser.keys("k")
    expect("one back", chosen(), 1)
    browser.keys(Keys.END)
    expect("the last one", chosen(), 13)
    browser.keys(Keys.HOME)
    expect("the first one", chosen(), 0)
    browser.keys("x", "0x5555")
    test.wait_for_rows(["CALL NFSv3 LOOKUP", "REPLY NFSv3 LOOKUP"])
    browser.keys(Keys.ESCAPE, "j")
    expect("the first shown one behind the chosen one", chosen(), 13)
    browser.keys(Keys.ESCAPE)
    browser.wait("Esc clears the filters", "return document.querySelectorAll('#canvas .row').length === 14")
    browser.keys("?")
    expect("the keys", browser.find("#keys").is_displayed(), True)
    browser.keys(Keys.ESCAPE)
    expect("the keys are gone", browser.find("#keys").is_displayed(), False)


def use_large_page(test):
    browser = test.browser
    total = int(re.search(r"^[\d,]+", browser.texts("#totals")[0])[0].replace(",", ""))
    expect("100,000 messages", total >= 100_000, True)

    def few(where):
        count = browser.run("return document.querySelectorAll('#canvas .row').length")
        expect(f"rows in the document {where}: {count}", 0 < count <= MOST_ROWS, True)

    few("at the top")
    browser.keys(Keys.END)
    few("at the end")
    expect("the last message", browser.find("#canvas .row[aria-selected=true]").get_attribute("data-message"),
           str(total - 1))
    for part in range(1, 10):
        browser.run("const l = document.getElementById('ladder'); l.scrollTop = l.scrollHeight * arguments[0] / 10", part)
        browser.wait("rows are drawn where the window is", """
            const box = document.getElementById('ladder').getBoundingClientRect();
            return [...document.querySelectorAll('#canvas .row')].some(row => {
              const place = row.getBoundingClientRect();
              return place.top >= box.top && place.top < box.top + 100;
            })""")
        few(f"at {part} tenths")
    browser.fill("xid", hex(0x20000000 + 24_000))
    test.wait_for_rows(["CALL NFSv3 READ", "RDMA Write, STag 0xab005dc0", "REPLY NFSv3 READ"])
    test.row("RDMA Write").click()
    browser.hover(test.field("STag"))
    expect("octets of a message far away", test.marked_octets(), "ab 00 5d c0")


def case_large(test):
    """100,000 messages: the document holds few of them, and filters find what is far away."""
    capture = Capture()
    connection = connect(capture)
    for number in range(24_999):
        lookup(connection, 0x10000000 + number, b"file-%d" % number)
        read(connection, 0x20000000 + number, 0xAB000000 + number, bytes(40)) if number % 2 == 0 else \
            lookup(connection, 0x20000000 + number, b"again-%d" % number)
    page = test.page_of(capture)
    for scheme in ("light", "dark"):
        test.browser.prefer(scheme)
        test.browser.open(page)
        test.expect_colours(scheme == "dark")
        use_large_page(test)


def case_themes(test):
    """The page follows the system, light or dark, and its switch goes before; text can be read in both."""
    page = test.page_of(usual())
    browser = test.browser
    for scheme, is_dark in (("light", False), ("dark", True)):
        browser.prefer(scheme)
        browser.open(page)
        for dark in (is_dark, not is_dark, is_dark):
            test.expect_colours(dark)
            test.row("CALL NFSv3 READ").click()
            browser.hover(test.field("rdma_xid"))
            expect("octets", test.marked_octets(), "33 33 44 44")
            browser.click("#theme")
    browser.resize(420, 800)
    expect("nothing is wider than a narrow window",
           browser.run("return document.documentElement.scrollWidth <= innerWidth"), True)


def case_hostile(test):
    """Names of a peer, and of the capture, are text and nothing else."""
    capture = Capture()
    connection = connect(capture, private_data=HOSTILE[0])
    for number, name in enumerate(HOSTILE):
        lookup(connection, number + 1, name)
    test.open(capture, name="<img src=x onerror=alert(1)>&amp;.pcap")
    browser = test.browser
    expect("elements", browser.run("return document.querySelectorAll('img, iframe, object, [onload], [onerror]').length"), 0)
    expect("scripts that run", browser.run("return document.querySelectorAll('script:not([type])').length"), 1)
    expect("the title", browser.driver.title.split("/")[-1], "<img src=x onerror=alert(1)>&amp;.pcap - weft dissect")
    shown = "\n".join(test.rows())
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[4]):
        expect(f"{name} is shown", name.decode() in shown, True)
    for row in range(len(test.rows())):
        browser.keys("j")
    # A script that came into the page in spite of this would not run: the policy names the page's own.
    browser.run("""const script = document.createElement('script');
                   try { script.textContent = 'window.came = 1'; } catch (error) { window.refused = error.name; }""")
    expect("a new script is refused", browser.run("return [window.refused, window.came === undefined]"),
           ["TypeError", True])
    logged = [line for line in browser.faults() if "TrustedScript" not in line]
    expect("nothing else happened", logged, [])


def case_cut(test):
    """A page whose writer was stopped shows what it has, and says so."""
    page = test.page_of(usual())
    text = page.read_text()
    page.write_text(text[:text.index('<script type="application/json" data-block="end">')])
    test.browser.open(page)
    expect("the remark", test.browser.texts("#remarks"), ["This page is cut: its writer did not come to the end."])
    expect("messages", len(test.rows()), 14)


def main(weft, case):
    with tempfile.TemporaryDirectory(prefix="weft-page-") as scratch:
        test = Test(weft, scratch)
        try:
            globals()[f"case_{case}"](test)
            expect("console and network", test.browser.faults(), [])
        finally:
            test.browser.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
