# SPDX-License-Identifier: BSD-3-Clause
"""Places where planes are: a mapping, a file, a dataset of HDF5; and advice to the kernel."""
import ctypes
import os

from rivalry.counting import PAGE


class Mapped:
    """Planes of an array in memory or mapped there."""

    def __init__(self, array):
        self.array, self.plane_bytes = array, array[0].nbytes

    def read(self, lo, hi, out):
        out[:] = self.array[lo:hi]

    def write(self, lo, data):
        self.array[lo:lo + len(data)] = data

    def will_need(self, lo, hi):
        advise(self.array, lo, hi, MADV_WILLNEED)

    def done_with(self, lo, hi):
        advise(self.array, lo, hi, MADV_PAGEOUT)


class InFile:
    """Planes of a file, read and written by system calls."""

    def __init__(self, path, shape, dtype, offset=0):
        self.fd, self.offset = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY), offset
        self.plane_bytes = shape[1] * shape[2] * dtype.itemsize

    def read(self, lo, hi, out):
        view, at = memoryview(out).cast("B"), self.offset + lo * self.plane_bytes
        while view:
            got = os.preadv(self.fd, [view], at)
            if got == 0:
                raise OSError("the file ends too early")
            view, at = view[got:], at + got

    def write(self, lo, data):
        view, at = memoryview(data).cast("B"), self.offset + lo * self.plane_bytes
        while view:
            done = os.pwritev(self.fd, [view], at)
            view, at = view[done:], at + done

    def will_need(self, lo, hi):
        os.posix_fadvise(self.fd, self.offset + lo * self.plane_bytes, (hi - lo) * self.plane_bytes, os.POSIX_FADV_WILLNEED)

    def done_with(self, lo, hi):
        at, length = self.offset + lo * self.plane_bytes, (hi - lo) * self.plane_bytes
        write_back(self.fd, at, length)
        os.posix_fadvise(self.fd, at, length, os.POSIX_FADV_DONTNEED)


class InHdf5(InFile):
    """Planes of a contiguous dataset: h5py moves them, advice goes to the file below."""

    def __init__(self, path, shape, dtype):
        import h5py

        self.file = h5py.File(path, "w")
        self.data = self.file.create_dataset("u", shape, dtype)
        self.data[0, 0, 0] = 0  # space is given at the first write
        self.file.flush()
        super().__init__(path, shape, dtype, self.data.id.get_offset())

    def read(self, lo, hi, out):
        self.data.read_direct(out, source_sel=slice_of(lo, hi))

    def write(self, lo, data):
        self.data.write_direct(data, dest_sel=slice_of(lo, lo + len(data)))


def slice_of(lo, hi):
    return (slice(lo, hi), slice(None), slice(None))


MADV_WILLNEED, MADV_HUGEPAGE, MADV_PAGEOUT, MADV_SEQUENTIAL, MADV_RANDOM = 3, 14, 21, 2, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]


def advise(array, lo, hi, advice):
    """For the whole pages of planes lo .. hi-1. Advice may be refused; it changes no bits."""
    begin = -(-(array.ctypes.data + lo * array[0].nbytes) // PAGE) * PAGE
    end = (array.ctypes.data + hi * array[0].nbytes) // PAGE * PAGE
    if end > begin:
        libc.madvise(begin, end - begin, advice)


def write_back(fd, at, length):
    """Begins to write what is dirty there, and waits for what was begun before: pages can go then."""
    WAIT_BEFORE, WRITE = 1, 2
    libc.sync_file_range(fd, at, length, WAIT_BEFORE | WRITE)
