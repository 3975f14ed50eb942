"""Switches off one receive-side check after the other and sees whether a test notices."""

import pathlib
import re
import shutil
import subprocess
import threading
import time
from concurrent import futures

import coverage

SOURCES = ["mpa", "ddp", "rdmap", "verbs-shim"]
# Folders whose test programs have to notice, in CMake's words.
TESTS = ["mpa", "ddp", "rdmap", "verbs-shim/soft", "tests/sim", "tests/vectors", "tests/conformance"]
CHECK = re.compile(r'\bviolates\(\s*"([^"]+)"')


def find_checks(root=coverage.ROOT):
    """Requirement id to the places that check it."""
    checks = {}
    for folder in SOURCES:
        for path in sorted([*(root / folder).rglob("*.cc"), *(root / folder).rglob("*.h")]):
            text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
            for match in CHECK.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                checks.setdefault(match[1], []).append(f"{path.relative_to(root)}:{line}")
    return checks


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

    def run(self, program, environment, switch_off, timeout):
        """(noticed, by what). A program that hangs or crashes has noticed, too."""
        env = coverage.with_environment(environment, WEFT_SWITCH_OFF=switch_off)
        command = [program, "--gtest_fail_fast", "--gtest_brief=1", "--gtest_color=no"]
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


def measure(runner, programs, say):
    """(seconds, program, environment) of each run with every check in place, quickest first."""
    timed = []
    for program, environment in programs:
        start = time.monotonic()
        failed, what = runner.run(program, environment, None, 600)
        if failed:
            raise coverage.Problem(f"{what} fails with every check in place")
        timed.append((time.monotonic() - start, program, environment))
    timed.sort()
    say(f"{len(timed)} runs pass with every check in place, {sum(each[0] for each in timed):.0f} s")
    return timed


def try_one(runner, row_id, timed):
    for seconds, program, environment in timed:
        noticed, what = runner.run(program, environment, row_id, 30 + 10 * seconds)
        if noticed or runner.stopped:
            return row_id, what
    return row_id, ""


def run(ids, build_dir, jobs, say):
    """Exit status: 0 where a test notices each check's absence, else 1."""
    checks = find_checks()
    rows = coverage.load_tables()
    unknown = sorted(set(ids) - set(checks))
    if unknown:
        raise coverage.Problem("no check carries " + ", ".join(unknown))
    for note in without_row(checks, rows):
        say(note)
    wanted = sorted(ids or checks)
    if not wanted:
        raise coverage.Problem("no check in the sources is written with violates()")
    programs = build(pathlib.Path(build_dir), jobs)
    runner = Runner()
    unnoticed = []
    pool = futures.ThreadPoolExecutor(jobs)
    try:
        timed = measure(runner, programs, say)
        work = [pool.submit(try_one, runner, row_id, timed) for row_id in wanted]
        for number, done in enumerate(futures.as_completed(work), 1):
            row_id, what = done.result()
            say(f"[{number}/{len(wanted)}] {row_id}: {what or 'NOBODY NOTICED'}")
            if not what:
                unnoticed.append(row_id)
    finally:
        runner.stop()
        pool.shutdown(cancel_futures=True)
    if not unnoticed:
        say(f"a test notices the absence of each of {len(wanted)} checks")
        return 0
    say(f"{len(unnoticed)} of {len(wanted)} checks can go without a test noticing:")
    for row_id in sorted(unnoticed):
        say(f"  {row_id}  {', '.join(checks[row_id])}")
    return 1
