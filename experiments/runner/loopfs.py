# SPDX-License-Identifier: BSD-3-Clause
"""A new file system in a file, such as `xfs 3GiB`, independent of the file system of the storage.

The loop device disappears when its last user closes it (autoclear). So a killed runner leaves at most a mount, which is recorded before it
is made. The image lies in the run's directory and is removed with it. The loop device bypasses the page cache where it can.
"""
import ctypes
import fcntl
import os
import shutil
import struct
import subprocess

from . import ownership

LOOP_CONFIGURE, LOOP_CTL_GET_FREE = 0x4C0A, 0x4C82
AUTOCLEAR, DIRECT_IO = 4, 16
PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
TRIES = 20  # another program may take the free device first


class LoopError(RuntimeError):
    """A sentence that says why there is no such file system."""


class Absent(LoopError):
    """A sentence that says what this machine or Linux lacks for such a file system."""


def tool_of(kind):
    path = shutil.which(f"mkfs.{kind}", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        package = f" (Debian: package {PACKAGES[kind]})" if kind in PACKAGES else ""
        raise Absent(f"mkfs.{kind} is not installed{package}")
    return path


def make_image(image, count):
    try:
        with open(image, "xb") as file:
            os.posix_fallocate(file.fileno(), 0, count)
    except OSError as error:
        raise LoopError(f"cannot make a file of {count} bytes in {os.path.dirname(image)}: {error.strerror}") from error


def format_device(device, kind, environment):
    """Formats the device, not the file, so that the tool sees its sectors."""
    done = subprocess.run([tool_of(kind), "-q", device], stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise LoopError(f"mkfs.{kind} failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}")


def attached(image):
    """(path, descriptor) of a loop device on the image. The device lasts as long as the descriptor or a mount."""
    backing = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(TRIES):
            with open("/dev/loop-control", "rb") as control:
                path = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
            device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            # struct loop_config: fd, block_size, struct loop_info64 (232 bytes, lo_flags at 52), reserved
            config = bytearray(8 + 232 + 64)
            struct.pack_into("=II", config, 0, backing, 0)
            struct.pack_into("=I", config, 8 + 52, AUTOCLEAR | DIRECT_IO)
            try:
                fcntl.ioctl(device, LOOP_CONFIGURE, config)
                return path, device
            except OSError as error:
                os.close(device)
                last = error
        raise last
    except OSError as error:
        raise Absent(f"cannot get a loop device: {error.strerror}") from error
    finally:
        os.close(backing)


def mount_new(image, kind, point, environment):
    path, device = attached(image)
    try:
        ownership.pause("loop device attached")
        format_device(path, kind, environment)
        if ownership.libc.mount(os.fsencode(path), os.fsencode(point), os.fsencode(kind), 0, None) != 0:
            raise Absent(f"this Linux cannot mount {kind} here: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(device)
    ownership.pause("mounted")


def make(owner, directory, kind, count):
    """Makes and mounts the file system. Returns (entry of the mount, an empty directory on it). Raises LoopError."""
    tool_of(kind)
    if os.geteuid() != 0:
        raise Absent(f"mounting {kind} needs root")
    image = os.path.join(os.path.realpath(directory), "image")
    entry = owner.mount(directory, image)
    try:
        os.mkdir(entry["path"], 0o700)
        make_image(image, count)
        mount_new(image, kind, entry["path"], owner.mark())
    except BaseException:
        owner.remove(entry)
        raise
    data = os.path.join(entry["path"], "data")
    os.mkdir(data)
    return entry, data
