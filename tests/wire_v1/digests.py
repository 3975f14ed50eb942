#!/usr/bin/env python3
"""Compares the octets that test programs put on the wire with the record.

usage: digests.py check [--tries N] PROGRAM...
       digests.py record [--runs N] [--changed] PROGRAM...

PROGRAM is a gtest program with tests/wire_v1/recorder.cc in it. It runs its tests and writes, for each end of a
connection, one line for each Send, RDMA Read and RDMA Write (record.h). check compares their digests with
digests/PROGRAM.txt, test by test, and names the first different line of each changed test. It ends with status 1
where a test changed or the program failed, and with 77 where tests are only new or gone, which it names: then the record
has to follow. With --tries a test that changed runs again, and fails where it differs each time: over sockets a busy
machine now and then cuts a batch of Calls elsewhere.

record adds new tests to that file and takes out gone ones. The record of a changed test stays, unless --changed says that
the change is meant. record runs the program N times (6), every second time with another layout of the heap, and refuses
tests whose lines are not the same each time. left_out.txt names the tests whose messages depend on timing, with the
reason.
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
SKIPPED = 77  # CTest shows it as skipped, and CI refuses it
OTHER_HEAP = "redzone=128:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"  # of AddressSanitizer


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
    """The record of one end's posts: a count, a digest of all, and a mark for each message (or, where there are many,
    for each few), by which the first different one is found."""

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


def filter_of(path, tests):
    return f"--gtest_filter={tests}-" + ":".join(read_left_out(path.name))


def environment_of(path, lines, other_heap):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GTEST_", "WEFT_"))}
    environment["WEFT_WIRE_RECORD"] = str(lines)
    if other_heap:
        environment["ASAN_OPTIONS"] = ":".join(filter(None, [environment.get("ASAN_OPTIONS"), OTHER_HEAP]))
    return environment


class Run:
    """One run of a program: the names of its tests, the lines of tests that put something on the wire, and the output
    of a program that failed."""

    def __init__(self, path, tests="*", other_heap=False):
        with tempfile.TemporaryDirectory() as folder:
            lines = pathlib.Path(folder) / "lines"
            options = {
                "cwd": HERE.parent.parent,
                "env": environment_of(path, lines, other_heap),
                "capture_output": True,
                "text": True,
            }
            self.names = read_names(subprocess.run([path, "--gtest_list_tests", filter_of(path, tests)], **options))
            ended = subprocess.run([path, "--gtest_brief=1", filter_of(path, tests)], **options)
            # The octets that a failed program has put on the wire may show the reason.
            self.failure = None if ended.returncode == 0 else (ended.stdout + ended.stderr)[-2000:]
            self.died = ended.returncode < 0 or "tests ran." not in ended.stdout
            self.tests = read_lines(lines)


def read_names(listed):
    names, suite = set(), None
    for line in listed.stdout.splitlines():
        words = line.split("#")[0].rstrip()
        if words.startswith("  "):
            names.add(suite + words.strip())
        elif words.endswith("."):
            suite = words
    return names


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


def change_of(ends, found):
    """The difference of a test's octets from its record, in words; None where there is none."""
    if len(found) != len(ends):
        return f"{len(found)} ends posted something (recorded: {len(ends)})"
    for number, (end, lines) in enumerate(zip(ends, found), 1):
        words = end.difference(lines)
        if words:
            return f"end {number}: {words}"
    return None


class Comparison:
    """The record against a run: new tests, gone tests, and the changes of others."""

    def __init__(self, recorded, run):
        self.new = sorted(run.tests.keys() - recorded.keys())
        self.gone = sorted(recorded.keys() - run.names)
        self.changed = {}
        for name in sorted(recorded.keys() & run.names):
            if run.died and name not in run.tests:
                continue  # it did not get there
            words = change_of(recorded[name], run.tests.get(name, []))
            if words:
                self.changed[name] = words

    def tell(self, program):
        for name in self.new:
            print(f"{program} {name}: NEW, nothing is recorded of it")
        for name in self.gone:
            print(f"{program} {name}: GONE, it is recorded and no longer there")
        for name, words in self.changed.items():
            print(f"{program} {name}: CHANGED, {words}")


def check(path, tries):
    recorded = read_recorded(path.name)
    run = Run(path)
    compared = Comparison(recorded, run)
    for _ in range(tries - 1):
        if compared.changed:
            again = Run(path, ":".join(compared.changed))
            expected = {name: recorded[name] for name in compared.changed}
            compared.changed = Comparison(expected, again).changed
            run.failure = again.failure
    compared.tell(path.name)
    if compared.changed:
        print(f"{len(compared.changed)} tests changed. Where that is meant: digests.py record --changed {path}")
    if compared.new or compared.gone:
        print(f"{len(compared.new)} tests are new, {len(compared.gone)} are gone: tests/wire_v1/digests.py record {path}")
    if run.failure:
        print(f"{path.name} failed:\n{run.failure}")
    if compared.changed or run.failure:
        return 1
    return SKIPPED if compared.new or compared.gone else 0


def write_recorded(program, tests):
    text = f"# What the tests of {program} put on the wire; written by tests/wire_v1/digests.py record.\n"
    text += "# Each end of a connection: how many messages, the digest of all, the beginning of each one's.\n"
    text += "# A test without a line put nothing there.\n"
    for name in sorted(tests):
        text += name + "\n"
        for end in tests[name]:
            text += f"  {end.count} {end.whole} {' '.join(end.marks)}\n"
    recorded_file(program).parent.mkdir(exist_ok=True)
    recorded_file(program).write_text(text)


def good_run(path, other_heap):
    run = Run(path, other_heap=other_heap)
    if run.failure:
        raise Failure(f"{path.name} failed:\n{run.failure}")
    return run


def record(path, runs, changed_too):
    first = good_run(path, False)
    unsteady = set()
    for number in range(1, runs):
        again = good_run(path, number % 2 == 1).tests
        unsteady |= {name for name in first.tests.keys() | again.keys() if first.tests.get(name) != again.get(name)}
    for name in sorted(unsteady):
        print(f"{path.name} {name}: not the same in each of {runs} runs; see left_out.txt")
    before = read_recorded(path.name)
    compared = Comparison(before, first)
    compared.tell(path.name)
    if unsteady:
        return 1
    now = {name: [End.of(lines) for lines in first.tests.get(name, [])] for name in first.names}
    kept = {} if changed_too else {name: before[name] for name in compared.changed}
    write_recorded(path.name, now | kept)
    if kept:
        print(f"{len(kept)} tests changed; what was recorded of them stays. With --changed it does not.")
    return 1 if kept else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "record"])
    parser.add_argument("programs", nargs="+", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--tries", type=int, default=1)
    options = parser.parse_args()
    try:
        results = [
            check(path, options.tries) if options.command == "check" else record(path, options.runs, options.changed)
            for path in options.programs
        ]
    except Failure as failure:
        print(failure)
        return 1
    return 1 if 1 in results else max(results)


if __name__ == "__main__":
    sys.exit(main())
