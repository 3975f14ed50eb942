"""Runs a test in a network namespace of its own, where the default ports of Weft are free."""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
INSIDE = "WEFT_OWN_NETWORK"


def enter(*more_namespaces):
    """Returns only inside the namespace: outside, it runs this program again and ends with its status.

    more_namespaces: further options of unshare(1). Where no namespace can be made, the test is skipped.
    """
    if os.environ.get(INSIDE) == "1":
        if subprocess.run(["ip", "link", "set", "lo", "up"], check=False).returncode != 0:
            sys.exit("no loopback interface of its own")
        return
    apart = ["unshare", "--net", *more_namespaces] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False).returncode != 0:
        print("skipped: no network namespace can be made here (unshare --net)")
        sys.exit(SKIPPED)
    os.environ[INSIDE] = "1"
    sys.exit(subprocess.run([*apart, sys.executable, "-B", *sys.argv], check=False).returncode)
