"""Writes a short text over the beginning of a file, through libnfs, and asks again where the server wants it later.

   libnfs_write.py URL TEXT

No program of libnfs's writes to a file that is there."""
import ctypes
import os
import sys
import time

nfs = ctypes.CDLL("libnfs.so.13")
nfs.nfs_init_context.restype = ctypes.c_void_p
nfs.nfs_parse_url_full.restype = ctypes.POINTER(ctypes.c_char_p)
nfs.nfs_get_error.restype = ctypes.c_char_p


def main():
    text = sys.argv[2].encode()
    context = ctypes.c_void_p(nfs.nfs_init_context())
    url = nfs.nfs_parse_url_full(context, sys.argv[1].encode())
    if not url:
        raise SystemExit(nfs.nfs_get_error(context).decode())
    server, path, file = url[0], url[1], url[2]
    if nfs.nfs_mount(context, server, path) != 0:
        raise SystemExit(nfs.nfs_get_error(context).decode())
    handle = ctypes.c_void_p()
    tries = 0
    while nfs.nfs_open(context, file, os.O_WRONLY, ctypes.byref(handle)) != 0:
        tries += 1
        error = nfs.nfs_get_error(context).decode()
        if tries == 60:
            raise SystemExit("open: " + error)
        print("asked to wait:", error)
        time.sleep(0.25)
    if nfs.nfs_write(context, handle, ctypes.c_uint64(len(text)), text) != len(text):
        raise SystemExit("write: " + nfs.nfs_get_error(context).decode())
    if nfs.nfs_close(context, handle) != 0:
        raise SystemExit("close: " + nfs.nfs_get_error(context).decode())
    print("written after", tries, "refusals")


main()
