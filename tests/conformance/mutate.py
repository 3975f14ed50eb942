"""Switches off one receive-side check after the other and sees whether a test notices."""

import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent import futures

import coverage

SOURCES = ["mpa", "ddp", "rdmap", "verbs-shim", "rpcrdma", "nfsulb"]
# Folders whose test programs have to notice, in CMake's words.
TESTS = ["mpa", "ddp", "rdmap", "verbs-shim/soft", "rpcrdma", "nfsulb", "tests/sim", "tests/vectors",
         "tests/conformance", "tests/rpc", "tests/ulb_oracle"]
# A bound that is switched off may let a test ask for all memory of the machine.
ASAN_LIMIT = "max_allocation_size_mb=512"
CHECK = re.compile(r'\bviolates\(\s*"([^"]+)"')


def find_checks(root=coverage.ROOT):
    """Requirement id to the places that check it."""
    checks = {}
    for folder in SOURCES:
        for path in sorted([*(root / folder).rglob("*.cc"), *(root / folder).rglob("*.h")]):
            text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
            for match in CHECK.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                for row_id in match[1].split():
                    checks.setdefault(row_id, []).append(f"{path.relative_to(root)}:{line}")
    return checks


def shared_places(checks):
    """The places of checks that have more than one id."""
    count = collections.Counter(place for places in checks.values() for place in set(places))
    return {place for place, num in count.items() if num > 1}


def without_row(checks, rows):
    """A line for each id that stands beside a check and in no table."""
    return [f"{row_id}: no such row, but a check carries it: {', '.join(places)}"
            for row_id, places in sorted(checks.items()) if row_id not in rows]


def build(build_dir, jobs):
    command = ["cmake", "--preset", "dev", "-B", str(build_dir), "-DWEFT_MUTATE=ON"]
    if shutil.which("ccache"):
        command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    subprocess.run(command, cwd=coverage.ROOT, stdout=subprocess.DEVNULL, check=True)
    targets = [f"{folder}/all" for folder in TESTS]
    subprocess.run(["ninja", "-C", str(build_dir), f"-j{jobs}", *targets], check=True)
    folders = [(build_dir / folder).resolve() for folder in TESTS]
    runs = {(program, environment) for program, environment, _ in coverage.gtest_commands(build_dir)}
    return sorted(run for run in runs if run[0].resolve().parent in folders)


class Runner:
    """Runs test programs, each in a process that stop() ends."""

    def __init__(self):
        self._lock = threading.Lock()
        self._running = set()
        self.stopped = False

    def run(self, program, environment, switch_off, timeout, *options):
        """(noticed, by which failure). A program that hangs or crashes has noticed, too."""
        asan_options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), ASAN_LIMIT]))
        env = coverage.with_environment(environment, WEFT_SWITCH_OFF=switch_off, ASAN_OPTIONS=asan_options)
        command = [program, "--gtest_fail_fast", "--gtest_brief=1", "--gtest_color=no", *options]
        with self._lock:
            if self.stopped:
                return False, ""
            process = subprocess.Popen(command, cwd=coverage.ROOT, env=env, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            self._running.add(process)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True, f"{program.name}: hung"
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode == 0:
            return False, ""
        failed = re.search(rb"\[  FAILED  \] ([\w/.]+)", output)
        return True, f"{program.name}: {failed[1].decode() if failed else f'exit status {process.returncode}'}"

    def stop(self):
        with self._lock:
            self.stopped = True
            for process in self._running:
                process.kill()


@dataclasses.dataclass(frozen=True)
class Run:
    """A test program in one environment, and its results with every check in place."""

    program: pathlib.Path
    environment: tuple
    seconds: float
    folder: str  # of its sources
    proves: dict  # the ids that its tests record, to the names of those tests


def measure(runner, programs, build_dir, say):
    """Each run once, with every check in place."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.xml"
        for program, environment in programs:
            start = time.monotonic()
            failed, what = runner.run(program, environment, None, 600, f"--gtest_output=xml:{result}")
            seconds = time.monotonic() - start
            if failed:
                raise coverage.Problem(f"{what} fails with every check in place")
            claims = coverage.Claims()
            coverage.parse_results(result, claims)
            beside = program.resolve().parent.relative_to(build_dir.resolve()).as_posix()
            runs.append(Run(program, environment, seconds, beside, dict(claims.proven)))
    say(f"{len(runs)} runs pass with every check in place, {sum(run.seconds for run in runs):.0f} s")
    return runs


def likeliest_first(row_id, place, runs):
    """The runs, the likeliest to notice soon first: they claim the id, lie beside the check, are quick."""
    beside = str(pathlib.PurePosixPath(place).parent)

    def cost(run):
        return run.seconds / (50 if row_id in run.proves else 5 if run.folder == beside else 1)

    return sorted(runs, key=cost)


def needs_claim(row_id, place, shared, rows):
    """Whether a test of this very row has to notice: tests of version 1 would miss a check that version 2 shares."""
    return place in shared and row_id in rows and rows[row_id].table in coverage.PROTOCOLS


def try_one(runner, row_id, place, runs, by_claim):
    """(id, place, which failure noticed it). by_claim: only tests that claim the id count."""
    for run in likeliest_first(row_id, place, runs):
        if by_claim and row_id not in run.proves:
            continue
        only = ["--gtest_filter=" + ":".join(run.proves[row_id])] if by_claim else []
        noticed, what = runner.run(run.program, run.environment, f"{row_id}@{place}", 30 + 10 * run.seconds, *only)
        if noticed or runner.stopped:
            return row_id, place, what
    return row_id, place, ""


def run(ids, build_dir, jobs, say):
    """Exit status: 0 where a test notices each check's absence, else 1."""
    checks = find_checks()
    rows = coverage.load_tables()
    unknown = sorted(set(ids) - set(checks))
    if unknown:
        raise coverage.Problem("no check carries " + ", ".join(unknown))
    for note in without_row(checks, rows):
        say(note)
    shared = shared_places(checks)
    wanted = [(row_id, place) for row_id in sorted(ids or checks) for place in checks[row_id]]
    if not wanted:
        raise coverage.Problem("no check in the sources is written with violates()")
    build_dir = pathlib.Path(build_dir)
    programs = build(build_dir, jobs)
    runner = Runner()
    unnoticed = []
    pool = futures.ThreadPoolExecutor(jobs)
    try:
        runs = measure(runner, programs, build_dir, say)
        work = [pool.submit(try_one, runner, row_id, place, runs, needs_claim(row_id, place, shared, rows))
                for row_id, place in wanted]
        for number, done in enumerate(futures.as_completed(work), 1):
            row_id, place, what = done.result()
            say(f"[{number}/{len(wanted)}] {row_id} {place}: {what or 'NOBODY NOTICED'}")
            if not what:
                unnoticed.append((row_id, place))
    finally:
        runner.stop()
        pool.shutdown(cancel_futures=True)
    if not unnoticed:
        say(f"a test notices the absence of each of {len(wanted)} checks")
        return 0
    say(f"{len(unnoticed)} of {len(wanted)} checks can go without a test noticing:")
    for row_id, place in sorted(unnoticed):
        say(f"  {row_id}  {place}")
    return 1
