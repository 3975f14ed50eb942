"""`tcpdump -U -w - | weft dissect -` tells of a connection while tcpdump still runs.

live.py WEFT: in a network namespace of its own. Exit status 77 where that, or tcpdump's capture, is impossible.
"""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import own_network  # noqa: E402

WANTED = ("MPA Request", "RDMA Read Request", "RDMA Write", "TCP end")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(own_network.SKIPPED)


def main(weft):
    own_network.enter()
    if shutil.which("tcpdump") is None:
        skip("no tcpdump")
    tcpdump = subprocess.Popen(["tcpdump", "-i", "lo", "-U", "-w", "-", "tcp"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=False)
    dissect = subprocess.Popen([weft, "dissect", "-"], stdin=tcpdump.stdout, stdout=subprocess.PIPE, text=True)
    tcpdump.stdout.close()
    listener = subprocess.Popen([weft, "ping", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        said = tcpdump.stderr.readline()
        if b"listening on lo" not in said:
            skip(f"tcpdump says {said!r}")
        address = listener.stdout.readline().split("rdma=")[1].split()[0]
        subprocess.run([weft, "ping", address, "-C", "2"], check=True, stdout=subprocess.DEVNULL, timeout=60)
        # The reads end where everything has come: a pipe that keeps its lines lets the test run into its time limit.
        for wanted in WANTED:
            while wanted not in (line := dissect.stdout.readline()):
                if not line:
                    sys.exit(f"FAILED: the output ended before {wanted}")
        if tcpdump.poll() is not None:
            sys.exit("FAILED: tcpdump has ended")
        tcpdump.terminate()
        rest = dissect.communicate(timeout=60)[0]
        if dissect.returncode != 0:
            sys.exit(f"FAILED: status {dissect.returncode} behind the end of the pipe\n{rest}")
        print("everything came while tcpdump ran")
    finally:
        for process in (tcpdump, dissect, listener):
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(sys.argv[1])
