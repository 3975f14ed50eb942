#!/usr/bin/env python3
"""Holds docs/man against `weft --help`: every option of a command stands in its page, and the page names no other.

usage: man_pages.py WEFT MAN_FOLDER
"""
import pathlib
import re
import subprocess
import sys

NFS = ("ls", "stat", "cat", "get", "put", "mkdir", "rm", "mv", "ln")
PAGES = {
    "weft.1": [[]],
    "weft-ping.1": [["ping"]],
    "weft-serve.1": [["serve"]],
    "weft-nfs.1": [["nfs", command] for command in NFS],
    "weft-perf.1": [["perf"]],
    "weft-dissect.1": [["dissect"]],
    "weft-doctor.1": [["doctor"]],
    "weft-gateway.1": [["gateway"]],
    "weft-top.1": [["top"]],
}
# Every command has --help; the page of weft itself is where it stands.
EVERYWHERE = {"--help"}


def options_of(weft, words):
    shown = subprocess.run([weft, *words, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    # An option stands at the beginning of its line, the short name first.
    lines = re.findall(r"^  (-\S+)", shown, re.MULTILINE)
    return {name for line in lines for name in line.split(",") if name.startswith("--")}


def options_in(page):
    """The options that the page describes in its section OPTIONS, and the options that it mentions anywhere."""
    text = page.read_text().replace("\\-", "-")
    section = text.split(".SH OPTIONS", 1)[1].split(".SH ", 1)[0]
    described = set()
    for line in re.findall(r"^\.TP\n(.*)", section, re.MULTILINE):
        described |= set(re.findall(r"--[a-z][a-z-]*", line))
    return described, set(re.findall(r"--[a-z][a-z-]*", text))


def main(weft, folder):
    faults = []
    known = set()
    mentions = {}
    for name, commands in PAGES.items():
        page = pathlib.Path(folder) / name
        offered = set().union(*(options_of(weft, words) for words in commands))
        if name != "weft.1":
            offered -= EVERYWHERE
        described, mentions[name] = options_in(page)
        known |= offered
        faults += [f"{name} does not describe {option}" for option in sorted(offered - described)]
        faults += [f"{name} describes {option}, which there is not" for option in sorted(described - offered)]
    for name, mentioned in mentions.items():
        faults += [f"{name} mentions {option}, which there is not" for option in sorted(mentioned - known)]
    on_disk = {page.name for page in pathlib.Path(folder).glob("*.1")}
    faults += [f"{name} is no page that is looked at" for name in sorted(on_disk - set(PAGES))]
    print("\n".join(faults) or f"{len(PAGES)} pages describe {len(known)} options")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
