#!/usr/bin/env python3
"""bpftrace_scripts.py FOLDER WEFT: bpftrace takes the scripts of FOLDER and finds their probes in the program WEFT. If
this kernel and user allow it, each script also watches a server and a client, and must print what it promises."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

folder, weft = pathlib.Path(sys.argv[1]), sys.argv[2]
# What a script prints when the traffic of `traffic` passes, and what it prints at its end.
PROMISES = {
    "rpc-latency.bt": ([], [r"@client_us\[\d+, \d+, 0\]", r"@server_us\[\d+, \d+, 0\]"]),
    "terminates.bt": ([r"terminate_sent, peer 127\.0\.0\.1:\d+: 0x[0-9a-f]{4} \S+", r"ended, reason 3: \S+"],
                      [r"@ends_by_reason\[3\]: [1-9]"]),
    "outstanding.bt": ([r"@bytes_posted\[\d+, \d+, \d\]: [1-9]", r"connection 0x[0-9a-f]+ ended: \S+"],
                       [r"@outstanding\[\d+, \d+\]"]),
}
faults = []


def fail(why):
    faults.append(why)
    print(why, file=sys.stderr)


def parse(script):
    """bpftrace's own check, without the kernel's; and the probes of the script are in the program."""
    with tempfile.TemporaryDirectory() as work:
        # -d compiles only with bpftrace 0.17 of Debian 12; with 0.23 of Debian 13 it wants a stage.
        compile_only = ["--emit-elf", pathlib.Path(work, "compiled")]
        run = subprocess.run(["bpftrace", *compile_only, script, weft], capture_output=True, text=True)
    if run.returncode != 0:
        fail(f"bpftrace does not take {script}: {run.stderr}")
    notes = subprocess.run(["readelf", "-nW", weft], check=True, capture_output=True, text=True).stdout
    there = set(re.findall(r"Provider: weft\s+Name: (\w+)", notes))
    for name in re.findall(r"usdt:\$1:weft:(\w+)", script.read_text()):
        if name not in there:
            fail(f"{script} names the probe {name}, which {weft} lacks")


def why_not_live():
    if os.geteuid() != 0:
        return "only root may attach probes"
    run = subprocess.run(["bpftrace", "-e", f"usdt:{weft}:weft:fpdu_in {{ }} interval:ms:1 {{ exit(); }}"],
                         capture_output=True, text=True, timeout=60)
    return None if run.returncode == 0 else "this kernel does not let bpftrace attach: " + run.stderr.strip()


def wait_for(file, pattern, seconds=60):
    """Waits until the file has a line like this."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = re.search(pattern, file.read_text())
        if found:
            return found
        time.sleep(0.05)
    return None


def traffic(perf, ping):
    """NULL Calls, then a peer that breaks a rule: octets behind the set-up that are no FPDU. `weft ping` takes peers
    without private data."""
    subprocess.run([weft, "perf", perf, "--op", "rpc-null", "--seconds", "1.5"], check=True, capture_output=True)
    host, port = ping.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as peer:
        # RFC 5044 section 7.1.1: key, C flag, revision 1, no private data.
        peer.sendall(b"MPA ID Req Frame" + bytes([0x40, 1, 0, 0]))
        peer.recv(100)
        peer.sendall(bytes([0, 20]) + bytes(40))
        while peer.recv(1000):
            pass


@contextlib.contextmanager
def listening(command, work):
    """`weft perf` or `weft ping`, which listens; gives its address."""
    out = work / (command + ".listener")
    with open(out, "w") as to:
        listener = subprocess.Popen([weft, command, "--listen", "127.0.0.1:0"], stdout=to, stderr=subprocess.DEVNULL)
    try:
        yield wait_for(out, r"rdma=(\S+)")[1]
    finally:
        listener.terminate()
        listener.wait(timeout=60)


def watch(script, work):
    events, sums = PROMISES[script.name]
    out = work / (script.name + ".out")
    with listening("perf", work) as perf, listening("ping", work) as ping:
        with open(out, "w") as to:
            tracer = subprocess.Popen(["bpftrace", "-B", "none", script, weft], stdout=to, stderr=subprocess.STDOUT)
        try:
            if not wait_for(out, r"watching"):
                return fail(f"{script} does not start: {out.read_text()}")
            traffic(perf, ping)
            for event in events:
                if not wait_for(out, event):
                    fail(f"{script} prints nothing like {event}:\n{out.read_text()}")
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(timeout=60)
    text = out.read_text()
    for promise in sums:
        if not re.search(promise, text):
            fail(f"{script} prints nothing like {promise} at its end:\n{text}")
    print(f"{script.name} ran beside a server and a client")


# bpftrace needs tracefs. Where root has not mounted it, this script starts anew with mounts of its own.
TRACEFS = "/sys/kernel/tracing"
has_tracefs = os.path.isdir(TRACEFS) and os.listdir(TRACEFS)
if os.geteuid() == 0 and not has_tracefs and "WEFT_OWN_MOUNTS" not in os.environ and shutil.which("unshare"):
    os.environ["WEFT_OWN_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "-m", "sh", "-c", f"mount -t tracefs none {TRACEFS}; exec \"$@\"", "sh",
                          sys.executable, *sys.argv])

if shutil.which("bpftrace") is None:
    print("bpftrace is missing (Debian package bpftrace): its scripts are not tested")
    sys.exit(1 if os.environ.get("WEFT_SKIP_IS_FAILURE") else 77)
scripts = sorted(folder.glob("*.bt"))
if {script.name for script in scripts} != PROMISES.keys():
    fail(f"{folder} has other scripts than this test")
for script in scripts:
    parse(script)
why = why_not_live()
if why:
    print(f"the scripts were parsed, but not run: {why}")
elif not faults:
    with tempfile.TemporaryDirectory() as work:
        for script in scripts:
            watch(script, pathlib.Path(work))
sys.exit(1 if faults else 0)
