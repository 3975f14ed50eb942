#!/usr/bin/env python3
"""Holds what test programs put on the wire against what was recorded.

usage: digests.py check [--tries N] PROGRAM...
       digests.py record [--runs N] PROGRAM...

PROGRAM is a gtest program with tests/wire_v1/recorder.cc in it. It runs its tests and writes, for each end of a
connection, one line for each Send, RDMA Read and RDMA Write (record.h). check compares their digests with
digests/PROGRAM.txt and says which line differs first. With --tries a test that differs runs again, and fails where it
differs each time: over sockets a busy machine now and then cuts a batch of Calls elsewhere. record rewrites that file and
says which tests changed; it runs the program N times (5) and refuses tests whose lines are not the same each time. Tests
that are left out, because timing decides what they send, stand in left_out.txt with the reason.
"""

import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MAX_MARKS = 64  # of an end
MAX_ENDS = 32  # of a test; where it has more they are as one
MAX_SHOWN = 8  # lines


class Failure(Exception):
    pass


def digest(lines, length):
    text = "".join(line + "\n" for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def groups_of(lines, size):
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def group_size(count):
    return max(1, -(-count // MAX_MARKS))


class End:
    """What one end posted, as it is recorded: a count, a digest of all, and a mark for each message (or, where there
    are many, for each few), by which the first one that differs is found."""

    def __init__(self, count, whole, marks):
        self.count, self.whole, self.marks = count, whole, marks

    @classmethod
    def of(cls, lines):
        groups = groups_of(lines, group_size(len(lines)))
        return cls(len(lines), digest(lines, 16), [digest(group, 4) for group in groups])

    def difference(self, lines):
        """Words that say where `lines` differ from this; None where they do not."""
        if self.count == len(lines) and self.whole == digest(lines, 16):
            return None
        size = group_size(self.count)
        for number, group in enumerate(groups_of(lines, size)):
            if number >= len(self.marks):
                break
            complete = len(group) == min(size, self.count - number * size)
            if complete and digest(group, 4) == self.marks[number]:
                continue
            first = number * size + 1
            which = f"{first}" if len(group) == 1 else f"{first} to {first + len(group) - 1}"
            shown = "".join(f"\n    {line}" for line in group[:MAX_SHOWN])
            return f"line {which} of {len(lines)} (recorded: {self.count}) differs; it is now{shown}"
        if len(lines) < self.count:
            return f"only the first {len(lines)} of {self.count} lines are there"
        if len(lines) > self.count:
            return f"line {self.count + 1} is new:\n    {lines[self.count]}"
        return "its digest differs"


def joined(ends):
    if len(ends) <= MAX_ENDS:
        return ends
    return [[line for number, lines in enumerate(ends, 1) for line in [f"end {number}", *lines]]]


def read_lines(path):
    """Test name -> list of ends -> lines."""
    tests, ends = {}, None
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("test "):
            ends = tests.setdefault(line[5:], [])
        elif re.fullmatch(r"end \d+", line):
            ends.append([])
        else:
            ends[-1].append(line)
    return {name: joined(ends) for name, ends in tests.items()}


def read_left_out(program):
    """Names of this program's tests, each with its reason."""
    left_out = {}
    for line in (HERE / "left_out.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, test, reason = line.split(None, 2)
            if name == program:
                left_out[test] = reason
    return left_out


def run(path, tests="*"):
    """The lines of these tests, and what the program says where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        lines = pathlib.Path(folder) / "lines"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GTEST_", "WEFT_"))}
        environment["WEFT_WIRE_RECORD"] = str(lines)
        command = [path, "--gtest_brief=1", f"--gtest_filter={tests}-" + ":".join(read_left_out(path.name))]
        ended = subprocess.run(command, cwd=HERE.parent.parent, env=environment, capture_output=True, text=True)
        # What a program that failed has put on the wire may say why.
        failure = None if ended.returncode == 0 else (ended.stdout + ended.stderr)[-2000:]
        return read_lines(lines), failure


def recorded_file(program):
    return HERE / "digests" / f"{program}.txt"


def read_recorded(program):
    tests, ends = {}, None
    path = recorded_file(program)
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("  "):
            count, whole, *marks = line.split()
            ends.append(End(int(count), whole, marks))
        elif line and not line.startswith("#"):
            ends = tests.setdefault(line, [])
    return tests


def differences(recorded, tests):
    """Pairs of a test and of what differs in it."""
    for name in sorted(recorded.keys() | tests.keys()):
        if name not in tests:
            yield name, "it put nothing on the wire, or is no longer there"
        elif name not in recorded:
            yield name, "nothing is recorded of it"
        elif len(tests[name]) != len(recorded[name]):
            yield name, f"{len(tests[name])} ends posted something (recorded: {len(recorded[name])})"
        else:
            for number, (end, lines) in enumerate(zip(recorded[name], tests[name]), 1):
                words = end.difference(lines)
                if words:
                    yield name, f"end {number}: {words}"
                    break


def check(path, tries):
    recorded = read_recorded(path.name)
    tests, failure = run(path)
    found = list(differences(recorded, tests))
    for _ in range(tries - 1):
        again = {name for name, _ in found}
        if again:
            expected = {name: ends for name, ends in recorded.items() if name in again}
            tests, failure = run(path, ":".join(sorted(again)))
            found = list(differences(expected, tests))
    for name, words in found:
        print(f"{path.name} {name}: {words}")
    if found:
        print(f"{len(found)} tests differ. Where that is meant: tests/wire_v1/digests.py record {path}")
    if failure:
        print(f"{path.name} failed:\n{failure}")
    return 1 if found or failure else 0


def write_recorded(program, tests):
    text = f"# What the tests of {program} put on the wire; written by tests/wire_v1/digests.py record.\n"
    text += "# Each end of a connection: how many messages, the digest of all, the beginning of each one's.\n"
    for name in sorted(tests):
        text += name + "\n"
        for lines in tests[name]:
            end = End.of(lines)
            text += f"  {end.count} {end.whole} {' '.join(end.marks)}\n"
    recorded_file(program).parent.mkdir(exist_ok=True)
    recorded_file(program).write_text(text)


def run_good(path):
    tests, failure = run(path)
    if failure:
        raise Failure(f"{path.name} failed:\n{failure}")
    return tests


def record(path, runs):
    before = read_recorded(path.name)
    tests = run_good(path)
    unsteady = set()
    for _ in range(runs - 1):
        again = run_good(path)
        unsteady |= {name for name in tests.keys() | again.keys() if tests.get(name) != again.get(name)}
    for name in sorted(unsteady):
        print(f"{path.name} {name}: not the same in each of {runs} runs; see left_out.txt")
    for name, words in differences(before, tests):
        print(f"{path.name} {name}: {words}")
    if unsteady:
        return 1
    write_recorded(path.name, tests)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "record"])
    parser.add_argument("programs", nargs="+", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tries", type=int, default=1)
    options = parser.parse_args()
    try:
        results = [
            check(path, options.tries) if options.command == "check" else record(path, options.runs)
            for path in options.programs
        ]
    except Failure as failure:
        print(failure)
        return 1
    return max(results)


if __name__ == "__main__":
    sys.exit(main())
