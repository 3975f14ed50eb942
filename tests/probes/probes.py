#!/usr/bin/env python3
"""probes.py DOC BINARY...: each program or library has the probes that the page DOC lists, with as many arguments as
the page names and with a counter (semaphore), and has no others."""
import re
import subprocess
import sys

doc, *binaries = sys.argv[1:]


def documented():
    """The probes of the page's table, with the names of their arguments."""
    with open(doc, encoding="utf-8") as page:
        rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ((?:\w+)(?:, \w+)*) \|$", page.read(), re.M)
    return {name: arguments.split(", ") for name, arguments in rows}


def built(binary):
    """Of each probe: the numbers of arguments at its places in the code, and the addresses of its counter."""
    notes = subprocess.run(["readelf", "-nW", binary], check=True, capture_output=True, text=True).stdout
    probes = {}
    for name, semaphore, arguments in re.findall(
            r"Provider: weft\s+Name: (\w+)\s+Location: \w+, Base: \w+, Semaphore: (\w+)\s+Arguments:(.*)", notes):
        counts, semaphores = probes.setdefault(name, (set(), set()))
        counts.add(len(arguments.split()))
        semaphores.add(int(semaphore, 16))
    return probes


faults = []
wanted = documented()
if not wanted:
    faults.append(f"{doc} lists no probes")
for binary in binaries:
    found = built(binary)
    for name in sorted(wanted.keys() - found.keys()):
        faults.append(f"{binary} lacks {name}")
    for name in sorted(found.keys() - wanted.keys()):
        faults.append(f"{doc} does not list {name} of {binary}")
    for name in sorted(found.keys() & wanted.keys()):
        counts, semaphores = found[name]
        if counts != {len(wanted[name])}:
            faults.append(f"{name} of {binary} has {counts} arguments, and {doc} names {len(wanted[name])}")
        # In an archive the addresses are not known yet.
        if 0 in semaphores and not binary.endswith(".a"):
            faults.append(f"{name} of {binary} has no counter")
    print(f"{binary}: {len(found)} probes")
for fault in faults:
    print(fault, file=sys.stderr)
sys.exit(1 if faults else 0)
