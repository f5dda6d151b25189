# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of trouble other than signals: faults, full file systems, limits, outputs, intruders."""
import os
import shutil
import signal
import time

from crashing.cases import MIB, RESUMABLE
from crashing.moments import act_intruder, act_truncate, wait_for
from crashing.places import leave_free, small_file_system
from crashing.processes import LIMIT_MEMORY, Wrong
from watch import holds_open, newest_superblock


def draw_fault(campaign):
    """(options, exit statuses that are right)"""
    dice = campaign.dice
    kind = dice.choice(["eio", "enospc", "fail_after", "harmless"])
    spec = {"eio": f"eio={dice.choice([0.3, 0.01, 0.001]):g}", "enospc": f"enospc={dice.choice([0.3, 0.01, 0.001]):g}",
            "fail_after": f"fail_after={int(2 ** dice.uniform(0, 13))}",
            "harmless": f"short={dice.uniform(0, 0.6):.2f},reorder=1,delay_us={dice.choice([0, 100, 1000])},"
                        f"refuse={dice.uniform(0, 0.4):.2f},eagain={dice.choice([0, 0.01])}"}[kind]
    return ["--fault", f"seed={dice.randint(1, 10**6)},{spec}"], {0} if kind == "harmless" else {0, 3}


def fault(campaign):
    """Errors of the wrapped backend, and in half of the cases again when the run is resumed."""
    campaign.case.backend = f"fault:{campaign.case.backend}"
    words, right = draw_fault(campaign)
    end = campaign.expect(campaign.run([*campaign.first_words(), *words]), right)
    _, note_bytes, finished = newest_superblock(campaign.place.store)
    if end.status == 3 and note_bytes and not finished and campaign.case.algorithm in RESUMABLE and campaign.dice.random() < 0.5:
        words, right = draw_fault(campaign)
        end = campaign.expect(campaign.run(campaign.resume_words(*campaign.calm_backend(), *words)), right)
    return end


def accel_fault(campaign):
    """Copy or launch number N fails, at once or when it is found to be done."""
    word, number = campaign.dice.choice(["fault", "late"]), int(2 ** campaign.dice.uniform(0, 9))
    campaign.accel, before = ["--accel", f"{campaign.accel[1]},{word}={number}"], campaign.accel
    end = campaign.expect(campaign.run(campaign.first_words()), {0, 3})
    campaign.accel = before
    return end


def call(campaign):
    """Call number N of all system calls fails."""
    number = int(2 ** campaign.dice.uniform(0, 9))
    errno = campaign.dice.choice([5, 5, 28, 12, 4])
    words = [*campaign.first_words(), "--fault", f"call={number},errno={errno}"]
    return campaign.expect(campaign.run(words), {0, 2, 3})


def full(campaign):
    return campaign.expect(campaign.run(campaign.first_words()), {0, 3})


def flakey(campaign):
    return campaign.expect(campaign.run(campaign.first_words()), {0, 2, 3})


def full_output(campaign):
    """The file system of the output has too little space; the result must still be available afterwards."""
    grid = campaign.bench.oracle(campaign.case.problem)[1].stat().st_size
    mount = small_file_system(campaign.stack, campaign.folder, "full", grid + 24 * MIB)
    leave_free(mount, int(grid * campaign.dice.uniform(0, 0.95)))
    campaign.files["output"] = mount / "out.npy"
    end = campaign.expect(campaign.run(campaign.first_words()), {2, 3})
    if set(os.listdir(mount)) - {"lost+found", "ballast"}:
        raise Wrong(f"the full file system has files that should not be there: {os.listdir(mount)}")
    campaign.files["output"] = campaign.outputs / "out.npy"
    return end


def memory(campaign):
    limit = campaign.dice.choice([3, 5, 8, 12, 20, 32, 48]) * MIB
    more = campaign.dice.choice([[], ["--dram", limit, "--reserve", 0]])
    end = campaign.run([*campaign.first_words(), *more], prefix=[LIMIT_MEMORY, limit, "--keep-cache", "--"])
    if end.status == 137:
        campaign.bench.count("memory: killed by the kernel at the limit")
    return campaign.expect(end, {0, 2, 3, 137})


def truncate(campaign):
    end = campaign.run(campaign.first_words(), act_truncate(campaign))
    return campaign.expect(end, {0, 3} if campaign.harmed else {0})


def intruder(campaign):
    return campaign.expect(campaign.run(campaign.first_words(), act_intruder(campaign)), {0})


def output(campaign):
    kind = campaign.dice.choice(["absent directory", "directory", "exists", "input", "killed", "report"])
    campaign.note(f"# output: {kind}")
    path = campaign.files["output"]
    if kind == "killed":
        come = moment_of_output(campaign)
        return campaign.expect(campaign.run(campaign.first_words(), come), {0, -9})
    if kind == "report":
        words = [*campaign.first_words(), "--json", campaign.folder / "absent" / "report.json"]
        return campaign.expect(campaign.run(words), {2})
    if kind == "absent directory":
        campaign.files["output"] = campaign.folder / "absent" / "out.npy"
    elif kind == "directory":
        path.mkdir()
    elif kind == "input" and campaign.case.problem.from_file:
        return output_over_input(campaign)
    else:
        path.write_bytes(b"somebody's data")
    may, campaign.may_overwrite = campaign.may_overwrite, False
    end = campaign.run(campaign.first_words())
    campaign.may_overwrite = may
    if end.status == 0:
        raise Wrong("the run replaced an existing output without --overwrite")
    campaign.expect(end, {2})
    campaign.files["output"] = campaign.outputs / "out-2.npy"
    return end


def output_over_input(campaign):
    """Works on a copy of the input, so that later campaigns keep theirs."""
    copy = campaign.folder / "grid.npy"
    shutil.copyfile(campaign.bench.folder / f"input-{campaign.case.problem.number}.npy", copy)
    words = [copy if word == campaign.bench.folder / f"input-{campaign.case.problem.number}.npy" else
             copy if word == campaign.files["output"] else word for word in campaign.first_words()]
    before, files = copy.read_bytes(), campaign.files
    campaign.files = {}
    end = campaign.run(words)
    campaign.files = files
    if copy.read_bytes() != before:
        raise Wrong("--output named the file of --input, and the input is gone")
    return campaign.expect(end, {2})


def moment_of_output(campaign):
    def act(process, end):
        if wait_for(process, lambda process, passed: holds_open(process, campaign.outputs), campaign.bench.patience):
            time.sleep(campaign.dice.choice([0, campaign.dice.uniform(0, 0.01)]))
            end.sent = signal.SIGKILL
            process.kill()
            campaign.note("    # SIGKILL while its output is open")
    return act


# trouble -> what it does to a campaign; kill, signal and stop are acts in the middle of any run
KINDS = {"fault": fault, "accel-fault": accel_fault, "call": call, "full": full, "flakey": flakey, "error": flakey, "full-output": full_output,
         "memory": memory, "truncate": truncate, "output": output, "intruder": intruder}
