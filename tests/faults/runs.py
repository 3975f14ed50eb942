"""Runs the copy's tests: once to see which faults each reaches, then with one fault at a time."""

import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
import xml.etree.ElementTree
from concurrent import futures

from places import Problem

MAX_ROWS = 8192
# One process of tests takes about this long, by the tests' times without a fault.
CHUNK_SECONDS = 3.0
CHUNK_TESTS = 200
KEPT_OUTPUT = 1 << 18  # bytes of a program's output, from its end


@dataclasses.dataclass(frozen=True)
class Program:
    """A test program in one environment, or a test of ctest that is no gtest program."""

    name: str
    command: tuple
    environment: tuple
    folder: str
    directory: str
    is_gtest: bool
    timeout: float


@dataclasses.dataclass(frozen=True)
class Test:
    program: int  # index
    name: str
    seconds: float


def programs(build_dir, root):
    """The tests of ctest that run a built program."""
    listing = subprocess.run(["ctest", "--test-dir", str(build_dir), "--show-only=json-v1"], capture_output=True,
                             text=True, check=False)
    if listing.returncode:
        raise Problem(f"ctest lists no tests in {build_dir}: {listing.stderr.strip()}")
    found = {}
    for test in json.loads(listing.stdout)["tests"]:
        command = test.get("command", [])
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        built = [pathlib.Path(word) for word in command if word.startswith(str(build_dir)) and os.path.isfile(word)]
        if not built or "FIXTURES_REQUIRED" in properties:
            continue
        is_gtest = any(word.startswith("--gtest_filter=") for word in command)
        command = [word for word in command if not word.startswith("--gtest_")]
        changes = properties.get("ENVIRONMENT_MODIFICATION", [])  # NAME=set:VALUE
        environment = (*properties.get("ENVIRONMENT", []), *(change.replace("=set:", "=", 1) for change in changes))
        name = " ".join([built[0].name if is_gtest else test["name"], *environment])
        found[name] = Program(name, tuple(command), environment, built[0].parent.relative_to(build_dir).as_posix(),
                              properties.get("WORKING_DIRECTORY", str(root)), is_gtest,
                              float(properties.get("TIMEOUT", 60)))
    if not found:
        raise Problem(f"no test program is built in {build_dir}")
    return sorted(found.values(), key=lambda program: program.name)


class Sandbox:
    """As root, a faulty program that removes files may remove any: so each runs where nothing but the copy of the tree
    and a temporary folder can be written to. Without root it could harm no more than its user can."""

    SCRIPT = """set -e; mount --make-rprivate /; mount --bind "$1" "$1"; mount --bind "$2" /tmp
for each in $(awk '$4 ~ /^rw/ && $2 != "/tmp" && $2 !~ "^/(proc|dev|sys)" {print $2}' /proc/mounts | sort -u); do
  case "$each" in "$1") ;; *) mount -o remount,bind,ro "$each" 2>/dev/null || true ;; esac
done
shift 2; exec "$@" """

    def __init__(self, root, folder, say):
        self.temporary = folder / "tmp"
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir(parents=True)
        self.temporary.chmod(0o1777)
        self.prefix = []
        if os.geteuid() == 0:
            prefix = ["unshare", "-m", "bash", "-c", self.SCRIPT, "sandbox", str(root), str(self.temporary)]
            probe = f'touch "{root}/.weft_faults" /tmp/.weft_faults && ! touch /.weft_faults 2>/dev/null'
            if subprocess.run([*prefix, "bash", "-c", probe], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode == 0:
                self.prefix = prefix
            else:
                say("note: no mount namespaces here; faulty programs run as root over the whole machine")

    def clear(self):
        for entry in self.temporary.iterdir():
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)


@dataclasses.dataclass
class Ended:
    status: int  # negative: a signal's number
    hung: bool
    output: str  # the end of it
    seconds: float


class Runner:
    """Runs commands, each in a session of its own. Ends the processes that they leave behind; stop() ends all."""

    def __init__(self, sandbox, patience):
        self.sandbox = sandbox
        self.patience = patience  # seconds
        self.lock = threading.Lock()
        self.running = {}
        self.stopped = False

    def run(self, program, arguments, settings, timeout):
        mark = uuid.uuid4().hex
        env = {**os.environ, **dict(s.split("=", 1) for s in program.environment), **settings,
               "WEFT_FAULTS_RUN": mark, "WEFT_SKIP_IS_FAILURE": ""}
        options = env.get("ASAN_OPTIONS", "")
        env["ASAN_OPTIONS"] = f"{options}:hard_rss_limit_mb=4000" if options else "hard_rss_limit_mb=4000"
        start = time.monotonic()
        with self.lock:
            if self.stopped:
                return Ended(0, False, "", 0)
            process = subprocess.Popen([*self.sandbox.prefix, *program.command, *arguments], cwd=program.directory,
                                       env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            self.running[process] = mark
        tail = bytearray()

        def read():
            while piece := process.stdout.read1(65536):
                tail.extend(piece)
                del tail[:-KEPT_OUTPUT]

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        hung = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            self.end(process, mark)
            with self.lock:
                del self.running[process]
        reader.join(5)
        return Ended(process.returncode, hung, bytes(tail).decode("utf-8", "replace"), time.monotonic() - start)

    def end(self, process, mark):
        """The process, and all processes with its mark."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        needle = f"WEFT_FAULTS_RUN={mark}".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if needle in environ.read():
                        os.kill(int(entry), signal.SIGKILL)
            except OSError:
                continue

    def stop(self):
        with self.lock:
            self.stopped = True
            running = list(self.running)
        for process in running:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except OSError:
                pass


class Reached:
    """Which tests reach which faults, and how long each takes."""

    def __init__(self, all_programs, num_faults):
        self.programs = all_programs
        self.tests = {number: [] for number in range(1, num_faults)}
        self.notes = []
        self.num_tests = 0

    def to_json(self):
        return {"programs": [dataclasses.asdict(p) for p in self.programs], "notes": self.notes,
                "num_tests": self.num_tests,
                "tests": {k: [dataclasses.astuple(t) for t in tests] for k, tests in self.tests.items()}}

    @staticmethod
    def from_json(data):
        made = Reached([Program(**{k: tuple(v) if isinstance(v, list) else v for k, v in p.items()})
                        for p in data["programs"]], 1)
        made.tests = {int(k): [Test(*t) for t in tests] for k, tests in data["tests"].items()}
        made.notes, made.num_tests = data["notes"], data["num_tests"]
        return made

    def add(self, index, faults, ended, folder):
        """One program's record: folder holds its files."""
        program = self.programs[index]
        if not program.is_gtest:
            if ended.hung or ended.status not in (0, 77):
                self.notes.append(f"{program.name} fails without a fault; it does not count")
                return
            if ended.status == 0:
                self.num_tests += 1
                for fault in self.rows(folder / "reached", 1, len(faults))[0]:
                    self.note(fault, Test(index, "", ended.seconds))
            return
        results = self.results(folder / "result.xml")
        if results is None:
            self.notes.append(f"{program.name} ends early without a fault; it does not count")
            return
        path = folder / "reached.names"
        names = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rows = self.rows(folder / "reached", len(names) + 1, len(faults))
        for name, row in zip(names, rows[1:]):
            passed, seconds = results.get(name, (False, 0))
            if passed is None:
                continue  # skipped
            if not passed:
                self.notes.append(f"{program.name}: {name} fails without a fault; it does not count")
                continue
            self.num_tests += 1
            for fault in row | rows[0]:
                self.note(fault, Test(index, name, seconds))

    def note(self, fault, test):
        if fault in self.tests:
            self.tests[fault].append(test)

    @staticmethod
    def rows(path, count, width):
        if not path.exists():
            return [set() for _ in range(count)]
        with open(path, "rb") as record:
            record.read(4)
            return [{fault for fault, mark in enumerate(record.read(width)) if mark} for _ in range(count)]

    @staticmethod
    def results(path):
        """Test's name to (True passed, False failed, None skipped; seconds)."""
        try:
            tree = xml.etree.ElementTree.parse(path)
        except (OSError, xml.etree.ElementTree.ParseError):
            return None
        found = {}
        for case in tree.iter("testcase"):
            if case.get("status") != "run":
                continue
            passed = None if case.get("result") == "skipped" else case.find("failure") is None
            found[f"{case.get('classname')}.{case.get('name')}"] = (passed, float(case.get("time", "0")))
        return found


def find_reached(runner, all_programs, room, jobs, say):
    """Runs every test once without a fault. room: how many faults a row of the record has room for."""
    reached = Reached(all_programs, room)
    lock = threading.Lock()

    def one(index):
        program = all_programs[index]
        # Below the sandbox's writable folder, whose name within is /tmp.
        inside = pathlib.Path(tempfile.mkdtemp(dir=runner.sandbox.temporary))
        seen = pathlib.Path("/tmp") / inside.name if runner.sandbox.prefix else inside
        arguments = [f"--gtest_output=xml:{seen}/result.xml", "--gtest_brief=1"] if program.is_gtest else []
        ended = runner.run(program, arguments, {"WEFT_FAULTS_REACHED": f"{seen}/reached"},
                           1800 if program.is_gtest else 4 * program.timeout)
        with lock:
            if not runner.stopped:
                reached.add(index, range(room), ended, inside)
        shutil.rmtree(inside, ignore_errors=True)
        return index, ended

    with futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for number, done in enumerate(futures.as_completed([pool.submit(one, i) for i in range(len(all_programs))]),
                                          1):
                index, ended = done.result()
                say(f"  [{number}/{len(all_programs)}] {all_programs[index].name}: {ended.seconds:.0f} s")
        except BaseException:
            runner.stop()
            raise
    return reached


def chunks(reached, number, file):
    """Lists of tests of one program, in the order in which they are likely to tell soon."""
    by_program = collections.defaultdict(list)
    for test in reached.tests[number]:
        by_program[test.program].append(test)
    made = []
    folder = os.path.dirname(file)
    for index, tests in by_program.items():
        chunk, seconds = [], 0.0
        for test in sorted(tests, key=lambda t: (t.seconds, t.name)):
            if chunk and (seconds + test.seconds > CHUNK_SECONDS or len(chunk) == CHUNK_TESTS):
                made.append((chunk, seconds))
                chunk, seconds = [], 0.0
            chunk.append(test)
            seconds += test.seconds
        made.append((chunk, seconds))

    def cost(entry):
        chunk, seconds = entry
        program = reached.programs[chunk[0].program]
        nearness = 5 if program.folder and folder.startswith(program.folder) else 1
        return (0.3 + seconds) / nearness / min(len(chunk), 10)

    return [chunk for chunk, _ in sorted(made, key=cost)]


@dataclasses.dataclass
class Outcome:
    fault: int
    outcome: str  # noticed, survived, not reached
    by: str = ""
    how: str = ""  # fails, crashes, hangs
    seconds: float = 0.0
    num_tests: int = 0
    flaky: list = dataclasses.field(default_factory=list)


def run_chunk(runner, reached, chunk, fault):
    program = reached.programs[chunk[0].program]
    seconds = sum(test.seconds for test in chunk)
    names = [test.name for test in chunk]
    arguments = ["--gtest_filter=" + ":".join(names), "--gtest_fail_fast", "--gtest_color=no"]
    settings = {"WEFT_FAULT": str(fault)} if fault else {}
    timeout = runner.patience + 10 * seconds
    ended = runner.run(program, arguments if program.is_gtest else [], settings, timeout)
    if not ended.hung and ended.status in ((0,) if program.is_gtest else (0, 77)):
        return None
    started = re.findall(r"^\[ RUN      \] (\S+)", ended.output, re.MULTILINE)
    failed = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", ended.output, re.MULTILINE)
    how = "hangs" if ended.hung else "fails" if failed or not program.is_gtest else "crashes"
    name = failed[0] if failed else started[-1] if started else ""
    return name, how


def try_fault(runner, reached, number, file):
    """Runs the tests that reach fault number until one fails that passes without it."""
    start = time.monotonic()
    result = Outcome(number, "survived" if reached.tests[number] else "not reached")
    for chunk in chunks(reached, number, file):
        left = chunk
        while left and not runner.stopped:
            told = run_chunk(runner, reached, left, number)
            if told is None:
                result.num_tests += len(left)
                break
            name, how = told
            program = reached.programs[chunk[0].program]
            suspects = [test for test in left if test.name == name] or left
            # By chance it may fail without the fault, or fail only once with it.
            if runner.stopped or (run_chunk(runner, reached, suspects, 0) is None
                                  and run_chunk(runner, reached, suspects, number) is not None):
                result.outcome, result.by, result.how = "noticed", " ".join([program.name, name]).strip(), how
                result.seconds = time.monotonic() - start
                return result
            result.flaky.append(" ".join([program.name, name]).strip())
            left = [test for test in left if test not in suspects]
    result.seconds = time.monotonic() - start
    return result
