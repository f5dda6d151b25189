# SPDX-License-Identifier: BSD-3-Clause
"""Questions on io_uring: uncached I/O, registered buffers, and polling, with a check that it happened."""
from analysis.origin import spaced

from .study import SCHEDULE, URING, Effect, Question, by_sign, counter, kernel_of, merged, read_kib, read_ratio, report, step_ms, system_ms, take, takes

# ------------------------------------------------------------------ RWF_DONTCACHE


def reclaimed(r):
    """pages that reclaim took, of those that the run stored"""
    taken = counter("pgsteal_file")(r)
    return taken * 4096 / report(r)["write_bytes"] if taken is not None and report(r)["write_bytes"] else None


def dontcache(s):
    system = Effect(s, "uring-uncached", URING, system_ms)
    yield (f"A run with RWF_DONTCACHE {takes(s, 'uring-uncached', URING, 'one with O_DIRECT')}, and {takes(s, 'uring-uncached', SCHEDULE, 'a mapping that the schedule advises')}. The storage reads "
           f"{s.median('uring-uncached', read_ratio):.2f} times the bytes loaded.")  # fmt: skip
    yield by_sign(system, f"It takes {system} the system time of O_DIRECT.", f"It takes {system} the system time of O_DIRECT.", f"Its system time shows no clear difference from that of O_DIRECT ({system}).") + (
        " This is the system time of the process alone. The threads of the kernel that write back are not in it, so for buffered writes it is a lower bound.")  # fmt: skip
    left = s.median("uring-uncached", reclaimed) if s.values("uring-uncached", reclaimed) else 0
    if 0.85 < left < 1.15:
        yield (f"Reclaim took {left:.0%} as many pages as the run stored. This is as many as were written, or as many as were read: the runs cannot show which of the two stayed. Linux drops a page after its write-back only if that ends in a task, "
               "and not in an interrupt (`folio_end_dropbehind` in `mm/filemap.c`).")  # fmt: skip
    elif left > 0.1:
        yield f"Reclaim took {left:.0%} as many pages as the run stored."


# ------------------------------------------------------------------ options of a ring

PLAIN, REGISTERED, SQPOLL, IOPOLL, POLLED = "ring-plain", "ring-registered", "ring-sqpoll", "ring-iopoll", "polled-reads"
RINGS = [("plain", PLAIN), ("registered", REGISTERED), ("registered, SQPOLL", SQPOLL), ("registered, IOPOLL", IOPOLL)]


def poller_share(r):
    """CPU time of iou-sqp threads, of the run's time"""
    threads = report(r).get("ring_threads")
    return None if threads is None else threads.get("iou-sqp", 0.0) / r["wall_s"]


def interrupts(r):
    """interrupts of the device, of the requests that it completed"""
    counted = r.get("block") or {}
    done = counted.get("reads", 0) + counted.get("writes", 0)
    return counted["interrupts"] / done if done and "interrupts" in counted else None


def process_system_ms(r):
    """system time of the process a step; SQPOLL's thread belongs to it"""
    return kernel_of("system_s")(r) / report(r)["steps_done"] * 1000


process_system_ms.timed = True


def registered(s):
    system = Effect(s, REGISTERED, PLAIN, process_system_ms)
    return f"Registered memory and a registered file {take(s, REGISTERED, PLAIN, 'a plain ring')}{f'; the system time is {system} that of a plain one' if system.enough else ''}."


def sqpoll(s):
    polled = s.median(SQPOLL, poller_share)
    if polled <= 0:
        return f"SQPOLL was asked for, but no thread iou-sqp took CPU time, so nothing is said of it ({note(s, SQPOLL) or 'the device gave no reason'})."
    return f"SQPOLL happened: its thread iou-sqp had a core for {polled:.0%} of the run. It {takes(s, SQPOLL, REGISTERED, 'a run without it')}. The system time is {s.median(SQPOLL, process_system_ms):.0f} ms a step with it and {s.median(REGISTERED, process_system_ms):.0f} without: it includes that of the thread, which wants a core of its own. This machine has {s.machine()['cores']}."


def note(s, name):
    done = s.done(name)
    device = report(next(iter(done.values()))).get("device") or {} if done else {}
    return device.get("note") or ""


def kernels_answer(s):
    """What Linux does with a polled read that a program asks for all the same."""
    found = s.values(POLLED, lambda r: report(r))
    if not found:
        return ""
    answer, polled, plain = found[-1]["answer"], found[-1]["polled"], found[-1]["plain"]
    if answer != "done":
        return f" A program that asks for it all the same gets {answer} from Linux at the first read."
    if polled["interrupts"] is None:
        return f" A program that asks for it all the same reads 4 KiB in {polled['us']:.0f} us, and in {plain['us']:.0f} us without; its interrupts cannot be told."
    how = "silently uses interrupts" if polled["interrupts"] > 0.5 * polled["reads"] else "polls"
    return f" For a program that asks for it all the same Linux {how}: {polled['interrupts']} interrupts for {polled['reads']} reads of 4 KiB."


def iopoll(s):
    said = note(s, IOPOLL)
    if "iopoll" in said:
        same = takes(s, IOPOLL, REGISTERED, "the run that does not ask for it")
        return f"IOPOLL did not happen, and memext says so: \"{said}\".{kernels_answer(s)} The run with `--iopoll` {same}."
    polled, usual = s.median(IOPOLL, interrupts), s.median(REGISTERED, interrupts)
    if polled > 0.5 * usual:
        return f"IOPOLL was asked for and accepted, but the device raised {polled:.2f} interrupts a request ({usual:.2f} without it): it did not poll."
    return f"IOPOLL happened: the device raised {polled:.2f} interrupts a request instead of {usual:.2f}. It {takes(s, IOPOLL, REGISTERED, 'a run without it')}."


def rings(s):
    first = s.latest(PLAIN)
    size = next((b for a, b in zip(first["command"], first["command"][1:]) if a == "--request-size"), None) if first else None
    seen = f"Below io_uring the block layer merged {s.median(PLAIN, merged):.0%} of them, and the device saw reads of {s.median(PLAIN, read_kib):.0f} KiB. " if s.values(PLAIN, merged) and s.values(PLAIN, read_kib) else ""
    yield (f"Requests have at most {spaced(size)}, so that the cost of each shows. {seen}" if size else "") + registered(s)
    yield sqpoll(s)
    yield iopoll(s)


QUESTIONS = [
    Question("dontcache", "RWF_DONTCACHE", "Is uncached buffered I/O (Linux 6.14) a replacement for O_DIRECT?", "The papers' aio is libaio with O_DIRECT.",
             [("uring, O_DIRECT", URING), ("uring, RWF_DONTCACHE", "uring-uncached"), ("mmap, schedule", SCHEDULE)], ((step_ms, "ms a step"), (system_ms, "system ms a step")), dontcache),
    Question("rings", "Registered buffers, SQPOLL, IOPOLL", "What do the options of a ring bring, and did polling happen?", "No counterpart in the papers.",
             RINGS, ((step_ms, "ms a step"), (process_system_ms, "system ms a step"), (interrupts, "interrupts a request, after merging")), rings, also=(("reads of 4 KiB", POLLED),)),
]  # fmt: skip
