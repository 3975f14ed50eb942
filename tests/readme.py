#!/usr/bin/env -S python3 -B
"""Compares the front page and the page on the library with the example and the commands that they show.

readme.py example        docs/library.md shows examples/client.cc as it is, but for its first line, a comment
readme.py commands WEFT  the commands under "Try it" in README.md work as typed, behind the one that builds
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import own_network

ROOT = pathlib.Path(__file__).resolve().parent.parent


def check_example():
    shown = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "docs/library.md").read_text(), re.M | re.S)
    example = (ROOT / "examples/client.cc").read_text().split("\n", 1)[1]
    if shown != [example]:
        sys.exit("docs/library.md does not show examples/client.cc as it is")


def commands():
    part = (ROOT / "README.md").read_text().split("## Try it", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^    (.+)$", part, re.M)


def check_commands(weft):
    build, serve, ls = commands()
    assert build == "scripts/demo" and serve.endswith(" &"), (build, serve)
    program = "build/release/apps/weft"
    assert serve.startswith(program) and ls.startswith(program), (serve, ls)
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="weft-readme-") as state:
        os.environ["XDG_STATE_HOME"] = state
        serve_and_list(weft, serve, ls)


def serve_and_list(weft, serve, ls):
    server = subprocess.Popen([weft, *serve[: -len(" &")].split()[1:]], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        assert line.startswith("ready "), line
        listing = subprocess.run([weft, *ls.split()[1:]], check=True, capture_output=True, text=True, timeout=30).stdout
        assert "README.md" in listing, listing
    finally:
        server.terminate()
        server.wait(30)


def main():
    if sys.argv[1] == "example":
        return check_example()
    own_network.enter()
    return check_commands(sys.argv[2])


sys.exit(main())
