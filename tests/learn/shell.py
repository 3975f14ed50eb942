"""A shell that runs the commands of a chapter one by one, as a reader types them."""
import contextlib
import os
import re
import select
import shlex
import subprocess
import time

END = "\0end\0"  # no command prints this
JOB_NOTICE = re.compile(r"\[\d+\][+-]? +(Done|Exit \d+|Terminated|Killed)\b")  # of the shell, at any time


class Hung(Exception):
    pass


class Shell:
    """One bash. A command whose last character is & has begun once it prints a line that starts with "ready "."""

    def __init__(self, directory, environment):
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._type("set -m")

    def _type(self, line):
        self._bash.stdin.write((line + "\n").encode())
        self._bash.stdin.flush()

    def run(self, command, timeout):
        """Returns the lines that the command printed, on stdout and stderr, and its exit status."""
        self._type(f"eval {shlex.quote(command)} </dev/null 2>&1; printf '%b%d\\n' '\\0end\\0' $?")
        in_background = command.rstrip().endswith("&")
        until = time.monotonic() + timeout
        out = ""
        while not self._is_whole(out, in_background):
            if not select.select([self._bash.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise Hung(f"no end within {timeout} s; it printed:\n{out}")
            got = os.read(self._bash.stdout.fileno(), 65536)
            if not got:
                raise Hung(f"the shell has ended; the command printed:\n{out}")
            out += got.decode(errors="replace")
        begin = out.index(END)
        status, _, after = out[begin + len(END) :].partition("\n")
        text = out[:begin] + after
        lines = [line for line in text.split("\n") if not JOB_NOTICE.match(line)]
        return (lines[:-1] if lines[-1:] == [""] else lines), int(status)

    @staticmethod
    def _is_whole(out, in_background):
        at = out.find(END)
        if at < 0 or "\n" not in out[at:]:
            return False
        status, _, after = out[at + len(END) :].partition("\n")
        if not in_background or status != "0":
            return True
        whole = out[:at] + after
        return any(line.startswith("ready ") for line in whole.split("\n")[:-1])

    def close(self):
        """Ends the shell and the jobs that it still has."""
        try:
            self._type("kill $(jobs -p); wait; exit")
            self._bash.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._bash.kill()
            self._bash.wait()
        with contextlib.suppress(OSError):
            self._bash.stdin.close()
        self._bash.stdout.close()
