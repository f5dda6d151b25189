# SPDX-License-Identifier: BSD-3-Clause
"""A command that does it all: memext, or the program that uses UMap."""
import json
import os
import resource
import subprocess

from rivalry.job import flushed


def program(job):
    """A command that does it all: memext, or the program that uses UMap. `command` is it; what it says on stdout is its report."""
    done = subprocess.run(job.command, env={**os.environ, **job.o.get("environment", {})}, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise OSError(f"{os.path.basename(job.command[0])} ended with exit status {done.returncode}")
    flushed(job.output)
    most = {"peak_rss_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}
    return {**most, "report": json.loads(done.stdout)} if done.stdout.strip() else most
