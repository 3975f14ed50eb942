#!/usr/bin/env -S python3 -B
"""The captures of docs/learn/gallery against the course: one classic mistake each, and two without a mistake.

gallery.py check WEFT    compares the names of the captures with the scenes of tests/dissect/scenes.py, and the diagnosis of
                         `weft dissect` with the answers of docs/learn/10-answers.md

tests/dissect/evil_peer.py records the captures, and holds each byte of them against a new run.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/dissect"))
from scenes import SCENES  # noqa: E402

GALLERY = ROOT / "docs/learn/gallery"
FROM_LINUX = {"siw-mount.pcap", "linux-read.pcap"}
PICTURES = set(SCENES) - {"healthy", "markers"}
MAX_LEN = 20000  # bytes of a capture


def check_files():
    files = {file.name: file.stat().st_size for file in GALLERY.iterdir()}
    if set(files) != {f"{name}.pcap" for name in SCENES} | FROM_LINUX:
        sys.exit("docs/learn/gallery has other files than tests/dissect/evil_peer.py records")
    for name in sorted(set(files) - FROM_LINUX):
        if files[name] > MAX_LEN:
            sys.exit(f"{name} is above {MAX_LEN} bytes")


def check_answers(weft):
    """What an answer says of `weft dissect`, it says: a requirement of a violation, or words that it prints."""
    text = (ROOT / "docs/learn/10-answers.md").read_text()
    answers = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    if set(answers) != PICTURES:
        sys.exit(f"answers without a capture, or captures without an answer: {sorted(set(answers) ^ PICTURES)}")
    for name, answer in answers.items():
        said = ""
        for option in ([], ["--check"]):
            command = [weft, "dissect", *option, str(GALLERY / f"{name}.pcap")]
            said += subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        answer = " ".join(answer.split())
        names = re.findall(r"`weft dissect` names ([A-Z0-9]+-[\w.]+-\d+)", answer)
        violations = re.findall(r"^  VIOLATION ([^ :]+):", said, re.M)
        prints = re.findall(r"`weft dissect` prints `(.+?)`", answer)
        if not names + prints:
            sys.exit(f"{name}: the answer says nothing of weft dissect")
        wrong = [claim for claim in names if claim not in violations] + [claim for claim in prints if claim not in said]
        if wrong:
            sys.exit(f"{name}: weft dissect does not say {', '.join(wrong)}; its violations are {', '.join(violations)}")


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "check":
        return __doc__
    check_files()
    return check_answers(sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
