"""Prints the kHz of this machine's time stamp counter, which is the guest's, too: qemu without KVM hands it through.

A guest that measures it by itself is wrong where it gets little of the machine meanwhile, and its clock then runs several
times too fast or too slow. Here each reading lies between two readings of the clock, and the closest of many pairs counts.
"""
import ctypes
import mmap
import time

page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("0f31" "48c1e220" "4809d0" "c3"))  # rdtsc; shl rdx, 32; or rax, rdx; ret
rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))


def reading():
    """Nanoseconds and ticks at one moment."""
    best = None
    for _ in range(200):
        before = time.monotonic_ns()
        ticks = rdtsc()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, ticks)
    return best[1:]


began = reading()
time.sleep(0.2)
ended = reading()
print(round((ended[1] - began[1]) * 1e6 / (ended[0] - began[0])))
