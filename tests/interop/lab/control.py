"""control.py FOLDER capture FILE forward HOSTPORT:GUESTPORT...
control.py FOLDER end forward HOSTPORT:GUESTPORT...

Speaks with the running qemu of the guest in FOLDER: begins a capture of its network and forwards ports of 127.0.0.1 to it,
or ends both."""
import json
import os
import socket
import sys

folder, action, *rest = sys.argv[1:]
capture = os.path.abspath(rest.pop(0)) if action == "capture" else None
forwards = [forward.split(":") for forward in rest[1:]]
os.chdir(folder)  # a socket's path is short
control = socket.socket(socket.AF_UNIX)
control.settimeout(60)
control.connect("control")
answers = control.makefile()


def say(command, **arguments):
    control.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
    while True:
        answer = json.loads(answers.readline())
        if "error" in answer:
            sys.exit(f"qemu refuses {command}: {answer['error']['desc']}")
        if "return" in answer:
            return answer["return"]


answers.readline()
say("qmp_capabilities")
if capture:
    say("object-add", **{"qom-type": "filter-dump", "id": "capture", "netdev": "n0", "file": capture})
else:
    say("object-del", id="capture")
for host, guest in forwards:
    if capture:
        said = say("human-monitor-command", **{"command-line": f"hostfwd_add n0 tcp:127.0.0.1:{host}-10.0.2.15:{guest}"})
    else:
        said = say("human-monitor-command", **{"command-line": f"hostfwd_remove n0 tcp:127.0.0.1:{host}"})
        said = "" if "removed" in said else said
    if said:
        sys.exit(f"qemu: {said.strip()}")
