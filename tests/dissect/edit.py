"""Edits of captures: retransmissions, packets that overtake others, lost packets.

`weft dissect` has to tell the same messages of a capture whose packets came twice or in another order, and to go on
behind a lost one.

edit.py WEFT CAPTURE...: exit status 1 and a line for each failure.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

# How many layers go with the middle frame of a capture: its own, and those of the RPC message that it is a part of.
LOST_LAYERS = {
    "linux-nfs-client": 3,
    "linux-nfs-server": 5,
    "linux-nfs-server-versions": 8,
    "linux-nfs41-client-gateway": 5,
    "linux-nfs42-client-gateway": 5,
    "siw-peer-to-peer": 3,
    "siw-rping-client": 3,
    "siw-rping-server": 3,
}

IP_AT = {1: 14, 101: 0}  # by link type: Ethernet, raw IP


def read(path):
    """The header of a pcap file, and its packets: (header, octets)."""
    octets = pathlib.Path(path).read_bytes()
    assert octets[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"), f"{path} is no pcap file of this byte order"
    packets, at = [], 24
    while at + 16 <= len(octets):
        size = struct.unpack_from("<I", octets, at + 8)[0]
        packets.append((octets[at:at + 16], octets[at + 16:at + 16 + size]))
        at += 16 + size
    return octets[:24], packets


def write(path, header, packets):
    pathlib.Path(path).write_bytes(header + b"".join(head + octets for head, octets in packets))


def payload_len(header, octets):
    """Octets of TCP payload of an IPv4 packet; 0 for a packet of anything else."""
    ip = IP_AT[struct.unpack_from("<I", header, 20)[0]]
    if len(octets) < ip + 40 or octets[ip] >> 4 != 4 or octets[ip + 9] != 6:
        return 0
    length, ip_len = struct.unpack_from(">H", octets, ip + 2)[0], (octets[ip] & 15) * 4
    return length - ip_len - (octets[ip + ip_len + 12] >> 4) * 4


def twice(header, packets):
    """Each data packet comes again, three packets later."""
    out = []
    for i, packet in enumerate(packets):
        out.append(packet)
        if i >= 3 and payload_len(header, packets[i - 3][1]):
            out.append(packets[i - 3])
    return out


def swapped(header, packets):
    """A data packet overtakes the one before it of the same direction, where they follow one another."""
    out = list(packets)
    i = 1
    while i < len(out):
        one, other = out[i - 1][1], out[i][1]
        ip = IP_AT[struct.unpack_from("<I", header, 20)[0]]
        same_way = one[ip + 12:ip + 24] == other[ip + 12:ip + 24]
        if same_way and payload_len(header, one) and payload_len(header, other):
            out[i - 1], out[i] = out[i], out[i - 1]
            i += 1
        i += 1
    return out


def without(lost):
    """An edit that loses one packet."""
    def edit(_, packets):
        return packets[:lost] + packets[lost + 1:]
    return edit


def messages(weft, path):
    """What each side of each connection says, in order, the number of violations, and the packet of the middle frame.

    Times, latencies and comments on them are left out.
    """
    run = subprocess.run([weft, "dissect", "--json", path], capture_output=True, check=True)
    told, violations, packets = {}, 0, []
    for line in run.stdout.decode().splitlines():
        frame = json.loads(line)
        violations += len(frame.get("violations", []))
        if frame.get("layers"):
            packets.append(frame["packet"])
        for layer in frame.get("layers", []):
            fields = [(field["name"], field.get("text", field["value"])) for field in layer["fields"]]
            if fields and layer["layer"] != "TCP":
                told.setdefault((frame["connection"], frame["from"]), []).append((layer["layer"], fields))
    return told, violations, packets[len(packets) // 2]


def check(weft, path, folder):
    header, packets = read(path)
    original, violations, middle = messages(weft, path)
    if violations:
        yield f"{path}: {violations} violations"
    for name, edit in (("twice", twice), ("swapped", swapped), ("one lost", without(middle - 1))):
        edited = folder / "edited.pcap"
        write(edited, header, edit(header, packets))
        told, violations, _ = messages(weft, edited)
        if violations:
            yield f"{path}, {name}: {violations} violations"
        if name != "one lost" and told != original:
            yield f"{path}, {name}: other messages than in the original"
        if name == "one lost":
            before, after = (sum(map(len, every.values())) for every in (original, told))
            if not 0 < before - after <= LOST_LAYERS[path.stem]:
                yield f"{path}, {name}: {after} layers, and {before} in the original"
        yield None


def main(weft, captures):
    failures, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for path in map(pathlib.Path, captures):
            for failure in check(weft, path, pathlib.Path(folder)):
                checked += failure is None
                failures += [failure] if failure else []
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures or not checked:
        sys.exit(f"FAILED: {len(failures)} failures in {checked} edits")
    print(f"{checked} edited captures tell what the originals tell")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
