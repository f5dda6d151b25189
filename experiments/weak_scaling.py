#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Scaling of ranks: what coupling two ranks costs, on this machine and over a slow link, compared with a model.

measured     two coupled ranks of one thread each (a grid of 2 N planes) against two independent runs of N planes at the same time,
             in turns, `--pairs` times each: E = seconds of the independent ones / seconds of the coupled ones, the median.
             Links: `local` (sockets of this machine), or a rate as 1Gbit or 100Mbit: two network namespaces, joined by a pair of
             veth with a token bucket (tbf) at each end, and mpirun of MPICH (or --mpi openmpi) over TCP between them (root alone).
model        each rank computes h (bt - 1) / 2 planes a level twice over, at its one end, on average:
             T = max((1 + h (bt - 1) / (2 N)) * T_independent + message + lag, bytes / rate + 2 messages): the message of the first sweep, and
             what is left of one when the rank below ends a sweep (docs/ranks.md)
strong       --strong-ranks 1,2: ranks of one thread each share a grid of --size over sockets of this machine, in turns, --pairs times each.
             With more ranks than cores they take turns on those: that is said, and the model divides by cores
             T = T_1 / min(P, cores) * (1 + ends h (bt - 1) P / (2 N)), where a rank has `ends` neighbours (1 of two, 2 of the inner ones)
simulated    --simulate: no machine, a replay of the schedule of P = 1 to 1024 ranks, weak and strong: when each sweep of each rank may
             begin, when its ends are stored and sent, one message after the other on a link of a rate and a latency. Of messages in pieces,
             as memext has them, with commits and without; of messages that go, and are waited for, as a whole; and of those with sweeps
             that go up and down by turns

usage: experiments/weak_scaling.py [--links local,1Gbit,100Mbit] [--pairs 5] [--size 254 254 128] [--steps 160] [--bt 8] [--mpi mpich]
           [--backend dram] [--place DIR] [--strong-ranks 1,2] [--simulate] [--rate 1e9] [--link 10Gbit,20us] [--json FILE]
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEMEXT = Path(os.environ.get("MEMEXT_BUILD", ROOT / "build" / "release")) / "memext"
ELEMENT = 8
# Of an Ethernet frame of 1514 bytes, which tbf counts, TCP with time stamps carries 1448.
PAYLOAD = 1448 / 1514


def rate_of(word):
    found = re.fullmatch(r"([0-9.]+)([KMG]?)bit", word)
    if not found:
        sys.exit(f"weak_scaling.py: --links {word}: give local, or a rate such as 100Mbit")
    return float(found[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[found[2]] / 8


class Link:
    """Two network namespaces with a slow link between them. They are removed at the end."""

    def __init__(self, rate):
        self.rate, self.names = rate, [f"memext-{os.getpid()}-{end}" for end in "ab"]

    def __enter__(self):
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            self.ip("link", "add", "mxv0", "netns", self.names[0], "type", "veth", "peer", "name", "mxv1", "netns", self.names[1])
            for i, name in enumerate(self.names):
                for words in [["addr", "add", f"10.77.0.{i + 1}/24", "dev", f"mxv{i}"], ["link", "set", f"mxv{i}", "up"], ["link", "set", "lo", "up"]]:
                    self.ip("-n", name, *words)
                burst = max(64 << 10, int(self.rate / 500))  # 2 ms
                subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", f"mxv{i}", "root", "tbf", "rate", f"{int(self.rate * 8)}bit", "burst", f"{burst}b",
                                "latency", "200ms"], check=True)
            for i, name in enumerate(self.names):
                for _ in range(500):  # a while after it was set up
                    told = subprocess.run(["ip", "-n", name, "-j", "link", "show", f"mxv{i}"], check=True, capture_output=True, text=True).stdout
                    if json.loads(told)[0]["operstate"] == "UP":
                        break
                    time.sleep(0.02)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)


def open_mpi(link, folder, words):
    """As if the namespaces were two hosts: what mpirun has for ssh goes to the other one."""
    agent, net = folder / "agent.sh", "10.77.0.0/24"
    agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {link.names[1]} unshare -u sh -c "hostname memext-b; $*"\n')
    agent.chmod(0o755)
    return ["ip", "netns", "exec", link.names[0], "unshare", "-u", "sh", "-c", 'hostname memext-a; exec "$@"', "sh", "mpirun.openmpi", "--allow-run-as-root",
            "--host", "10.77.0.1:1,10.77.0.2:1", "--bind-to", "none", "--mca", "plm_rsh_agent", str(agent), "--mca", "oob_tcp_if_include", net,
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", net, "-n", "2", *words]


class Measurement:
    def __init__(self, arguments, folder):
        self.a, self.folder = arguments, folder
        self.plan = ["--plan", f"stream engine=tiled by={arguments.size[1]} bt={arguments.bt} threads=1"]

    def words(self, planes, where):
        nx, ny, _ = self.a.size
        place = ["-d", where, "--force"] if self.a.backend != "dram" else []
        words = [MEMEXT, "run", "-n", nx, ny, planes, "-t", self.a.steps, "--backend", self.a.backend, *place, "--threads", 1, *self.plan, "--quiet"]
        return [str(word) for word in words]

    def place(self, name):
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def independent(self):
        runs = []
        for i in range(2):
            where = self.place(f"alone-{i}")
            runs.append((subprocess.Popen([*self.words(self.a.size[2], where), "--json", str(where / "report.json")]), where))
        seconds = []
        for run, where in runs:
            if run.wait() != 0:
                sys.exit("an independent run failed")
            seconds.append(json.loads((where / "report.json").read_text())["seconds"])
        return max(seconds)

    def coupled(self, link):
        where = self.place("both")
        report = where / "report.json"
        words = [*self.words(2 * self.a.size[2], where), "--json", str(report)]
        environment = dict(os.environ)
        if link is None:
            command = [*words, "--ranks", "2"]
        elif self.a.mpi == "openmpi":
            command = open_mpi(link, self.folder, words)
        else:
            environment.update(UCX_TLS="tcp,self", MPIR_CVAR_NOLOCAL="1")
            each = [["-n", "1", "ip", "netns", "exec", name, "env", f"UCX_NET_DEVICES=mxv{i}", *words] for i, name in enumerate(link.names)]
            command = ["mpirun.mpich", *each[0], ":", *each[1]]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        result = json.loads(report.read_text())["ranks"]
        for one in result["each"]:
            assert one["sent_bytes"] == one["predicted_sent_bytes"], one
        return max(one["seconds"] for one in result["each"]), result

    def strong(self, ranks):
        """Strong scaling: 1, 2, ... ranks share a grid and run in turn; medians over the rounds. One rank is always measured, for comparison."""
        ranks = [1, *(n for n in ranks if n != 1)]
        h, bt, planes, cores = 1, self.a.bt, self.a.size[2], len(os.sched_getaffinity(0))
        took = {n: [] for n in ranks}
        for i in range(self.a.pairs):
            for n in ranks if i % 2 == 0 else ranks[::-1]:
                where = self.place(f"strong-{n}")
                command = [*self.words(planes, where), "--json", str(where / "report.json"), *(["--ranks", str(n)] if n > 1 else [])]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                result = json.loads((where / "report.json").read_text())
                took[n].append(max([one["seconds"] for one in result["ranks"]["each"]]) if n > 1 else result["seconds"])
        rows, one = [], statistics.median(took[1])
        for n in ranks:
            seconds = statistics.median(took[n])
            model = one / min(n, cores) * (1 + min(n - 1, 2) * h * (bt - 1) * n / (2 * planes))
            speed_up = statistics.median(a / b for a, b in zip(took[1], took[n]))
            rows.append({"ranks": n, "seconds": took[n], "speed_up": speed_up, "model_speed_up": one / model, "oversubscribed": n > cores})
            print(f"strong, {n} ranks  {seconds:7.3f} s  speed-up {speed_up:.2f}  model {one / model:.2f} ({speed_up * model / one:.3f} of it)"
                  + (f"  OVERSUBSCRIBED: {n} ranks on {cores} cores" if n > cores else ""), flush=True)
        return {"strong": rows, "cores": cores}

    def compare(self, name):
        h, planes, bt = 1, self.a.size[2], self.a.bt
        more = 1 + h * (bt - 1) / (2 * planes)
        pairs, last = [], None

        def turn(link):
            nonlocal last
            order = [0, 1] if len(pairs) % 2 == 0 else [1, 0]
            took = [None, None]
            for which in order:
                if which == 0:
                    took[0] = self.independent()
                else:
                    took[1], last = self.coupled(link)
            pairs.append(took)

        if name == "local":
            for _ in range(self.a.pairs):
                turn(None)
        else:
            with Link(rate_of(name)) as link:
                for _ in range(self.a.pairs):
                    turn(link)
        alone = statistics.median(pair[0] for pair in pairs)
        efficiency = statistics.median(pair[0] / pair[1] for pair in pairs)
        sent = last["predicted_sent_bytes"]
        rate = rate_of(name) * PAYLOAD if name != "local" else float("inf")
        sweeps = -(-self.a.steps // bt)
        message = sent / sweeps / rate
        on_link, swept = message / (bt * h), alone / (sweeps * planes)  # of a plane
        lag = max(0.0, on_link + (bt * h - 1) * max(0.0, on_link - swept) - bt * h * swept / 4)
        model = max(more * alone + message + lag, sent / rate + 2 * message)
        result = {"link": name, "pairs": pairs, "independent_s": alone, "coupled_s": statistics.median(pair[1] for pair in pairs), "efficiency": efficiency,
                  "e_weak": 1 / more, "of_e_weak": efficiency * more, "model_s": model, "model_efficiency": alone / model,
                  "of_model": efficiency / (alone / model), "sent_bytes": sent, "link_bytes_per_s": last["link_bytes_per_s"],
                  "link_latency_s": last["link_latency_s"], "wait_s": max(one["wait_s"] for one in last["each"])}
        print(f"{name:8}  independent {alone:7.3f} s  coupled {result['coupled_s']:7.3f} s  E {efficiency:.3f}  E_weak {1 / more:.3f} ({efficiency * more:.3f} of it)"
              f"  model {model:7.3f} s, E {alone / model:.3f} ({result['of_model']:.3f} of it)  link measured {last['link_bytes_per_s'] * 8e-6:.0f} Mbit/s,"
              f" {last['link_latency_s'] * 1e6:.0f} us", flush=True)
        return result


# ------------------------------------------------------------------ simulation

def simulate(ranks, planes, plane_cells, levels, bt, rate, link_rate, latency, h=1, ways="up"):
    """Seconds of `ranks` ranks of `planes` planes each. A sweep of b levels computes planes + (b - 1) h planes a level for two neighbours, half
    of it for one; its front moves up, from the ghosts of the lower end to those of the upper: the lower message is needed when it begins, the
    upper one when b h planes are left; the lowest b h planes are stored when it has gone 2 b h planes up, the uppermost at its end. A rank
    sends one message after the other. ways: "turns", every other sweep goes down, with the ends exchanged; "mirrored", all sweeps of every other
    rank do."""
    done = [0.0] * ranks  # end of the last sweep
    sending = [0.0] * ranks  # the link of each is free again
    start = latency + min(bt, levels) * h * plane_cells * ELEMENT / link_rate
    low = [start if k > 0 else 0.0 for k in range(ranks)]  # arrival of the message for the next sweep, from below and above
    high = [start if k < ranks - 1 else 0.0 for k in range(ranks)]
    if ranks == 1:
        low, high = [0.0], [0.0]
    for sweep in range(-(-levels // bt)):
        b = min(bt, levels)
        levels -= b
        bytes_ = min(bt, levels) * h * plane_cells * ELEMENT
        next_low, next_high = [0.0] * ranks, [0.0] * ranks
        for k in range(ranks):
            down = ways == "turns" and sweep % 2 == 1 or ways == "mirrored" and k % 2 == 1
            first, last = (high, low) if down else (low, high)  # needed when a sweep begins, and near its end
            ends = (k > 0) + (k < ranks - 1)
            work = b * (planes + ends * (b - 1) * h / 2) * plane_cells / rate
            begin = max(done[k], first[k])
            left = min(1.0, b * h / planes)  # the part that needs what is above
            end = max(begin + work * (1 - left), last[k]) + work * left
            for step, stored in ((1 if down else -1, begin + min(1.0, 2 * b * h / planes) * work), (-1 if down else 1, end)):
                if bytes_ and 0 <= k + step < ranks:
                    sending[k] = max(stored, sending[k]) + bytes_ / link_rate
                    (next_high if step < 0 else next_low)[k + step] = sending[k] + latency
            done[k] = end
        low, high = next_low, next_high
    return max(done)


def simulate_pieces(ranks, planes, plane_cells, levels, bt, rate, link_rate, latency, h=1, commits=False):
    """The same, as memext does it: every sweep moves up, planes are sent as they are stored, and a rank begins with the first ones. In planes: the
    front goes from -n to planes + n (n = b h) where there are neighbours; each of the first n planes of another rank is a little more work than the
    one before, up to half of a whole one, when the front gets to the interior, and all of it n planes later, when the first plane is stored; at the
    upper end all levels are at work until the last plane is stored. A plane from below or above is needed when the front gets to it. commits: none
    is stored before all ranks have ended the sweep before."""
    ranks = min(ranks, 2 * -(-levels // bt) + 3)  # in a sweep nobody hears of more than a rank: those in the middle of more are alike
    done, sending, ended = [0.0] * ranks, [0.0] * ranks, 0.0
    plane_s = plane_cells * ELEMENT / link_rate

    def whole(n):
        return [latency + (i + 1) * plane_s for i in range(n)]

    first = min(bt, levels) * h
    low = [whole(first) if k > 0 else [] for k in range(ranks)]  # when each plane of a message is there
    high = [whole(first) if k < ranks - 1 else [] for k in range(ranks)]
    for _ in range(-(-levels // bt)):
        b = min(bt, levels)
        levels -= b
        n, sent, t = b * h, min(bt, levels) * h, b * plane_cells / rate
        next_low, next_high = [[]] * ranks, [[]] * ranks
        for k in range(ranks):
            begin = max([done[k]] + [there - i * i * t / (4 * n) for i, there in enumerate(low[k])])
            store = begin + (n - h / 2 if low[k] else n / 2) * t
            if commits:
                store = max(store, ended)
            at = store + (planes - n) * t
            stored = []
            for there in high[k]:
                at = max(at, there) + t * (1 - h / (2 * n))
                stored.append(at)
            if not high[k]:
                at += n / 2 * t
            done[k] = at
            if sent and k > 0:  # as it has room for another one there, this goes at once
                arrivals = []
                for i in range(sent):
                    sending[k] = max(store + (i + 1) * t, sending[k]) + plane_s
                    arrivals.append(sending[k] + latency)
                next_high[k - 1] = arrivals
            if sent and k < ranks - 1:
                arrivals = []
                for there in stored[n - sent:]:
                    sending[k] = max(there, sending[k]) + plane_s
                    arrivals.append(sending[k] + latency)
                next_low[k + 1] = arrivals
        low, high, ended = next_low, next_high, max(done)
    return max(done)


def closed_form(ranks, planes, plane_cells, levels, bt, rate, link_rate, latency, h=1, commits=False):
    """Seconds as runtime/tune/predict.c has them."""
    sweeps, ends, n = -(-levels // bt), min(ranks - 1, 2), bt * h
    rows = planes + ends * (n - h) / 2  # that are computed, each with all levels
    computing = levels * rows * plane_cells / rate
    if ranks == 1:
        return computing
    a_plane, link_plane = computing / (sweeps * rows), plane_cells * ELEMENT / link_rate
    message = latency + n * link_plane
    lag = max(0.0, latency + link_plane + (n - 1) * max(0.0, link_plane - a_plane) - n * a_plane / 4)
    around = (sweeps - 1) * ((ranks - 1) * lag - n * a_plane / 2) / ranks if commits else 0.0
    waiting = message + max(lag * min(ranks - 1, sweeps - 1), around)
    return max(computing + waiting, max(ends * sweeps * n * link_plane, sweeps * message) + 2 * message)


def simulation(a):
    nx, ny, planes = a.size
    words = a.link.split(",")
    link_rate = rate_of(words[0])
    latency = float(words[1][:-2]) * {"us": 1e-6, "ms": 1e-3}[words[1][-2:]] if len(words) > 1 else 2e-5
    cells, rows = nx * ny, []

    def each(ranks, share, bt):
        """Seconds of each way of doing it."""
        given = (ranks, share, cells, a.steps, bt, a.rate, link_rate, latency)
        return {"whole": simulate(*given), "alternating": simulate(*given, ways="turns"),
                "mirrored": simulate(*given, ways="mirrored"), "pieces": simulate_pieces(*given),
                "committed": simulate_pieces(*given, commits=True), "closed_form": closed_form(*given, commits=True)}

    alone = simulate(1, planes, cells, a.steps, a.bt, a.rate, link_rate, latency)
    one = simulate(1, planes * a.strong, cells, a.steps, a.bt, a.rate, link_rate, latency)
    print(f"simulation (no measurement): {nx} x {ny} x {planes} cells a rank, {a.steps} steps, bt {a.bt}, {a.rate:.3g} updates/s a rank, link {a.link}")
    names = ["whole", "by turns", "mirrored", "in pieces", "committed"]
    print("  weak: E, strong: speed-up")
    print("  ranks  E_weak", *[f"{name:>9}" for name in [*names, "predicted"]], "     planes", *[f"{name:>9}" for name in names])
    for ranks in [2**i for i in range(11)]:
        weak = {way: alone / seconds for way, seconds in each(ranks, planes, a.bt).items()}
        ends = min(ranks - 1, 2)
        e_weak = 1 / (1 + ends * (a.bt - 1) / (2 * planes))
        share = planes * a.strong // ranks
        strong = {way: one / seconds for way, seconds in each(ranks, share, min(a.bt, share)).items()} if share > 0 else None
        rows.append({"ranks": ranks, "e_weak": e_weak, "weak_efficiency": weak, "strong_planes": share, "strong_speed_up": strong})
        columns = ["whole", "alternating", "mirrored", "pieces", "committed"]
        print(f"  {ranks:5}   {e_weak:.3f}", *[f"{weak[way]:9.3f}" for way in [*columns, "closed_form"]],
              *([f"    {share:7}", *[f"{strong[way]:9.1f}" for way in columns]] if strong else []))
    return {"simulation": True, "link": a.link, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", default="local", help="links to measure, separated by commas: local, or rates such as 1Gbit (default: local)")
    parser.add_argument("--pairs", type=int, default=5, help="number of rounds (default: 5)")
    parser.add_argument("--size", type=int, nargs=3, default=[254, 254, 128], metavar="N", help="nx, ny and the planes of a rank, or with --strong-ranks the planes of all ranks (default: 254 254 128)")
    parser.add_argument("--steps", type=int, default=160, help="time steps (default: 160)")
    parser.add_argument("--bt", type=int, default=8, help="levels of a sweep (default: 8)")
    parser.add_argument("--backend", default="dram", help="backend of the runs (default: dram)")
    parser.add_argument("--place", type=Path, default=ROOT / "build", metavar="DIR", help="directory to work in (default: build)")
    parser.add_argument("--mpi", choices=["mpich", "openmpi"], default="mpich", help="the mpirun for links with a rate (default: mpich)")
    parser.add_argument("--strong-ranks", help="measure strong scaling with these numbers of ranks, e.g. 1,2")
    parser.add_argument("--simulate", action="store_true", help="simulate 1 to 1024 ranks, and measure nothing")
    parser.add_argument("--rate", type=float, default=1e9, help="--simulate: updates per second of a rank (default: 1e9)")
    parser.add_argument("--link", default="10Gbit,20us", help="--simulate: rate and latency of the link (default: 10Gbit,20us)")
    parser.add_argument("--strong", type=int, default=64, help="--simulate: in strong scaling, all ranks share this many times the planes of --size (default: 64)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    a = parser.parse_args()
    if a.simulate:
        results = simulation(a)
    else:
        folder = Path(tempfile.mkdtemp(prefix="memext-weak-", dir=a.place))
        try:
            m = Measurement(a, folder)
            results = [m.strong([int(n) for n in a.strong_ranks.split(",")])] if a.strong_ranks else [m.compare(name) for name in a.links.split(",")]
        finally:
            shutil.rmtree(folder)
    if a.json:
        a.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
