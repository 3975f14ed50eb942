"""An evil peer: it plays the mistakes of docs/learn/gallery against Weft's own ends, and compares what these answer.

evil_peer.py WEFT ENDS          exit status 1 and a line for each scene whose capture is not what the trace recorded
evil_peer.py WEFT ENDS update   writes the recorded captures into the gallery

The peer is a TCP socket that sends the octets of scenes.py, and no code of Weft's. The end under attack is a real one
with a trace: the program `weft`, or one of those in the directory ENDS (tests/dissect/ends). Where a scene has no
mistake, both ends are Weft's. The trace becomes the capture of the gallery: addresses, ports, sequence numbers and times
are those of the gallery, and every octet above TCP, the order and the end are those of the trace, but for Scene.renames.
"""

import contextlib
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from messages import CLIENT, SERVER, crc32c
from mount import receive
from scenes import BYE, HEAR, SCENES, Pair
from capture import ACK, SERVER_PORT, Capture, Connection  # messages.py has set the path

GALLERY = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/learn/gallery"
FIN = 0x01
PATIENCE = 60  # seconds for an answer; no answer takes one


# ---- traces and captures: (sender, octets) for each frame, and no octets for a FIN

def trace_frames(path, server_port):
    """What a trace has above TCP. It is pcapng, with one interface of raw IP."""
    octets, at = path.read_bytes(), 0
    while at < len(octets):
        kind, size = struct.unpack_from("<II", octets, at)
        if kind == 6:  # an Enhanced Packet Block
            length = struct.unpack_from("<I", octets, at + 20)[0]
            yield from frames_of(octets[at + 28:at + 28 + length], server_port)
        at += size


def frames_of(ip, server_port):
    tcp = ip[(ip[0] & 15) * 4:struct.unpack_from(">H", ip, 2)[0]]
    source, flags, payload = struct.unpack_from(">H", tcp)[0], tcp[13], tcp[(tcp[12] >> 4) * 4:]
    sender = SERVER if source == server_port else CLIENT
    if payload:
        yield sender, payload
    if flags & FIN:
        yield sender, b""


def renamed(octets, renames):
    """The FPDU with other octets in the place of some, and the CRC of these."""
    body = octets[:-4]
    for old, new in renames.items():
        body = body.replace(old, new)
    return octets if body == octets[:-4] else body + struct.pack("<I", crc32c(body))


def capture_of(frames, lacks=()):
    """lacks: the frames that the capture has lost. Where they are the first ones, it begins behind them."""
    capture = Capture()
    connection = Connection(capture, 40000)
    for number, (sender, octets) in enumerate(frames):
        if number in lacks:
            connection.sequence[sender] += len(octets)
            if set(range(number)) <= set(lacks):
                capture.packets.clear()
        elif octets:
            connection.add(sender, octets)
        else:
            connection.segment(sender, b"", ACK | FIN)
    return capture


# ---- the two ends

class Stage:
    """The programs of a scene, in a directory of its own."""

    def __init__(self, weft, ends, folder):
        self.weft, self.ends, self.folder = weft, ends, folder
        (folder / "export").mkdir()
        for i in range(200):
            (folder / "export" / f"a file of a large directory, number {i}").touch()

    def command(self, end, trace, port=0):
        program, *arguments = end
        if program == "weft":
            command = [self.weft, *arguments, "--remote-invalidation", "off", "--trace", str(trace)]
            if arguments[0] == "serve":
                command += ["--state-dir", str(self.folder / "state"), str(self.folder / "export")]
            return command
        if program == "rpc_end":
            return [f"{self.ends}/rpc_end", *arguments, str(trace), str(port)]
        arguments = [str(port) if one == "PORT" else one for one in arguments]
        return [f"{self.ends}/plain_end", "--trace", str(trace), *arguments]

    @contextlib.contextmanager
    def run(self, end, trace, port=0):
        """The end of a connection: its process. A command of weft goes on until it is stopped."""
        command = self.command(end, trace, port)
        with (open(trace.with_suffix(".log"), "w+", encoding="utf-8") as log,
              subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process):
            try:
                yield process
                if end[0] == "weft":
                    process.send_signal(signal.SIGTERM)
                if process.wait(PATIENCE) not in (0, -signal.SIGTERM):
                    raise ChildProcessError(f"{process.args} failed")
            except BaseException:
                log.seek(0)
                print(log.read(), file=sys.stderr)
                raise
            finally:
                process.kill()


def ports_of(server):
    """The ports of a server by name: rdma, mount."""
    ports = re.findall(r"(\w+)=[^ ]*:(\d+)", server.stdout.readline())
    if not ports:
        raise ChildProcessError(f"{server.args} does not listen")
    return {name: int(port) for name, port in ports}


class EvilPeer:
    def __init__(self, peer):
        peer.settimeout(PATIENCE)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer, self.is_set_up, self.heard = peer, False, b""

    def play(self, script):
        for line in script:
            if line == HEAR:
                self.heard = self.hear()
            elif line == BYE:
                self.peer.shutdown(socket.SHUT_WR)
            else:
                self.peer.sendall(line(self.heard) if callable(line) else line)
        while receive(self.peer, 1):
            pass

    def hear(self):
        """The ULPDU of the next frame without Markers. The first frame is that of the set-up."""
        if not self.is_set_up:
            self.is_set_up = True
            return receive(self.peer, int.from_bytes(receive(self.peer, 20)[18:], "big"))
        length = int.from_bytes(receive(self.peer, 2), "big")
        return receive(self.peer, (length + 5) // 4 * 4 + 2)[:length]


def attack_server(stage, scene, trace):
    with stage.run(scene.end, trace) as server:
        ports = ports_of(server)
        script = scene.script(ports) if callable(scene.script) else scene.script
        with socket.create_connection(("127.0.0.1", ports["rdma"]), PATIENCE) as peer:
            EvilPeer(peer).play(script)
    return ports["rdma"]


def attack_client(stage, scene, trace):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        port = listener.getsockname()[1]
        with stage.run(scene.end, trace, port):
            with listener.accept()[0] as peer:
                EvilPeer(peer).play(scene.script)
    return port


def meet(stage, pair, trace):
    with stage.run(pair.server, trace.with_suffix(".server")) as server:
        port = ports_of(server)["rdma"]
        with stage.run(pair.client, trace, port):
            pass
    return port


def record(stage, name):
    """The capture of a scene, in the file whose name is returned."""
    scene, trace, recorded = SCENES[name], stage.folder / f"{name}.pcapng", stage.folder / f"{name}.pcap"
    is_pair = isinstance(scene, Pair)
    play = meet if is_pair else attack_server if scene.role == CLIENT else attack_client
    frames = list(trace_frames(trace, play(stage, scene, trace)))
    if not is_pair:
        renames = scene.renames(frames)
        frames = [(sender, renamed(octets, renames)) for sender, octets in frames]
    capture_of(frames, scene.lacks if is_pair else ()).write(recorded)
    return recorded, frames


def main(weft, ends, update):
    failures = []
    with tempfile.TemporaryDirectory(prefix="weft-evil-") as directory:
        stage = Stage(weft, ends, pathlib.Path(directory))
        for name in SCENES:
            recorded, frames = record(stage, name)
            kept = GALLERY / recorded.name
            if update:
                kept.write_bytes(recorded.read_bytes())
            elif recorded.read_bytes() != kept.read_bytes():
                failures.append(name)
                print(f"{name}: the gallery has another capture than the trace, which is", file=sys.stderr)
                for sender, octets in frames:
                    print(f"  {sender} {len(octets)}: {octets[:64].hex() or 'FIN'}", file=sys.stderr)
    if failures:
        sys.exit(f"FAILED: {', '.join(failures)}")
    print(f"{len(SCENES)} captures of the gallery are what Weft's ends recorded")


if __name__ == "__main__":
    main(*sys.argv[1:3], sys.argv[3:] == ["update"])
