# SPDX-License-Identifier: BSD-3-Clause
# Functions for tests/run.sh and the experiments; bash sources this file. Every function prints to stderr what it does.

mx_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Debian's python3. Another python3 on PATH may lack numpy.
# shellcheck disable=SC2034
mx_python=/usr/bin/python3

mx_say() { printf '%s\n' "$*" >&2; }
mx_die() {
    mx_say "$(basename "$0"): $*"
    exit 2
}

# mx_missing_packages LIST: packages of a list that are not installed, one per line.
mx_missing_packages() {
    local package
    sed -e 's/#.*//' "$mx_root/$1" | while read -r package; do
        [ -z "$package" ] && continue
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# mx_consent CHANGES: prints what will be installed, and then CHANGES, sentences on what will be changed. On a terminal the user has ten
# seconds to stop the script.
mx_consent() {
    local missing=() installs="no package is missing, so nothing is installed"
    if command -v dpkg-query >/dev/null; then mapfile -t missing < <(mx_missing_packages packages.txt); fi
    [ ${#missing[@]} -eq 0 ] || installs="installs ${#missing[@]} packages (${missing[*]})"
    mx_say "$(basename "$0"): $installs. $1."
    if [ -t 0 ] && [ -t 2 ]; then
        read -r -t 10 -p "Press Enter to continue, Ctrl-C to stop (continues in 10 s) " || mx_say ""
    fi
    return 0
}

# mx_need_packages [LIST]: installs the missing packages of packages.txt or another list; returns at once if none is missing.
mx_need_packages() {
    local list=${1:-packages.txt}
    command -v dpkg-query >/dev/null ||
        mx_die "there is no dpkg, and this script installs Debian packages; on another system install the counterparts of $list, and build with cmake --preset release"
    local missing as_root=()
    mapfile -t missing < <(mx_missing_packages "$list")
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || mx_die "packages are missing, and installing them needs root or sudo: ${missing[*]}"
        as_root=(sudo)
    fi
    mx_say "installing ${#missing[@]} packages: ${missing[*]}"
    "${as_root[@]}" apt-get update -qq >&2 ||
        mx_die "apt-get update failed; the missing packages are: ${missing[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 ||
        mx_die "apt-get could not install: ${missing[*]}"
}

# mx_build PRESET [TARGET...]: configures and builds build/PRESET, all of it or these targets. Prints its output only if it fails.
mx_build() {
    local preset=$1 log targets=()
    [ $# -gt 1 ] && targets=(--target "${@:2}")
    log=$mx_root/build/$preset.log
    mkdir -p "$mx_root/build"
    mx_say "building $preset in build/$preset"
    if ! (cd "$mx_root" && cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(nproc)" "${targets[@]}") >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        mx_die "the build of $preset failed; $log has all of its output"
    fi
}

# mx_free_bytes PATH: bytes that this user can still write on the file system of PATH.
mx_free_bytes() { df --output=avail -B1 "$1" | tail -n 1 | tr -d ' '; }

# mx_is_memory PATH: true if PATH lies on a file system in memory.
mx_is_memory() { case $(stat -f -c %T "$1") in tmpfs | ramfs) return 0 ;; *) return 1 ;; esac; }
