# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 19 to 24 and Table II: Blk-Tune compared with manual choice and Naive-Tune."""
from analysis.claim import AT_MOST, CONFIRMED, LARGER, REFUTED, SMALLER, Part, near, near_difference, no_more_than
from analysis.claims.comparing import compare, gap_of, grows, part, short_of
from analysis.effects import by_repeat
from analysis.measures import SHORT, io_seconds, kernel_bytes, predicted_bytes, search_seconds, seconds, size_bytes, table2_rows, update_of_transfers


def _tuned(results, algorithm, tuner):
    return results["fig19"].one(algorithm=algorithm, tuner=tuner)


def blk_time(results, known):
    return [compare(f"{SHORT[a]}: blk / {t}", _tuned(results, a, "blk"), _tuned(results, a, t), seconds) for a in SHORT for t in ("manual", "naive")]


def blk_time_band(results, known):
    v = known["fig19"].value
    return [compare(f"{SHORT[a]}: blk / {t}", _tuned(results, a, "blk"), _tuned(results, a, t), seconds, near(v(f"blk-of-{t}-low"), v(f"blk-of-{t}-high"))) for a in SHORT for t in ("manual", "naive")]


def blk_bytes(results, known):
    """Blk-Tune's choice moves fewer bytes than the other tuners' choices. No plan of the same algorithm in the regret study moves fewer. Linux counts the bytes."""
    rivals = [(f"{SHORT[a]}, blk / {t}", _tuned(results, a, "blk"), _tuned(results, a, t), SMALLER) for a in SHORT for t in ("manual", "naive")]
    if "regret" in results:
        plan = results["regret"]
        for g in (g for g in plan.select(choice="blk") if g["algorithm"] in SHORT):  # for other algorithms the tuner minimises seconds
            rivals += [(f"{g['algorithm']}, blk / {o['choice']}", g, o, AT_MOST) for o in plan.select(algorithm=g["algorithm"]) if o is not g]
    return [compare(label, a, b, kernel_bytes, band, timed=False, exact=True) for label, a, b, band in rivals]


def five_below_three(results, known):
    return [compare("bytes, aio5y / aio3y", _tuned(results, "skewed-min", "blk"), _tuned(results, "skewed-y", "blk"), kernel_bytes, timed=False, exact=True)]


def five_faster(results, known):
    return [compare("aio5y / aio3y", _tuned(results, "skewed-min", "blk"), _tuned(results, "skewed-y", "blk"), seconds)]


def _manual(results, algorithms=("skewed-min", "skewed-y")):
    plan = results["fig22"]
    for g in plan.select(tuner="blk"):
        if g["algorithm"] in algorithms:
            yield g, plan.one(machine=g["machine"], algorithm=g["algorithm"], size=g["size"], tuner="manual"), f"{g['limit']} {SHORT[g['algorithm']]} {g['size']}"


def manual_longer(results, known):
    return [compare(f"manual / blk, {label}", manual, blk, seconds, LARGER) for blk, manual, label in _manual(results)]


def manual_longer_fast(results, known):
    """manual / blk on the device at full speed, in the plan that compares it with a slowed one."""
    return [compare(f"manual / blk, {name}", *_devices(results, a, "fast"), seconds, LARGER) for a, name in SHORT.items()]


def manual_longer_band(results, known):
    v = known["fig22"].value

    def band(g):
        return near_difference(*(v(f"{g['machine']}-{g['algorithm']}-{end}") for end in ("low", "high")))

    return [compare(f"manual / blk, {label}", manual, blk, seconds, band(blk)) for blk, manual, label in _manual(results)]


def io_time(results, known):
    v = known["fig22"].value
    return [compare(f"time of reads and time of writes, blk / manual, {label}", blk, manual, io_seconds, near(v("io-low"), v("io-high"))) for blk, manual, label in _manual(results, ("skewed-min",))]


def update_dominates(results, known):
    """For every run of aio5y, whose components the figure shows: time of the computation / time of everything that moves data, each in the time of the thread that does it."""
    for g in results["fig22"].select(algorithm="skewed-min"):
        yield part(f"update / transfers, {g['limit']} {g['size']} {g['tuner']}", by_repeat(g, update_of_transfers), LARGER, gap_of(g) or short_of(g))


def y_cheaper(results, known):
    """One cut through the same grid, across y or across z."""
    plan = results["divisions"]
    return [compare(f"predicted bytes, cut in y / in z, {SHORT[a]}", *(plan.one(figure="cuts", algorithm=a, cut=c) for c in "yz"), predicted_bytes, timed=False, exact=True) for a in SHORT]


def tuning_share(results, known):
    band = no_more_than(near(known["fig24"].value("share")))
    groups = [g for g in results["fig24"].select(search="exhaustive") if g["size"] != "1TiB"]
    return [part(f"search / run, {g['machine']} {g['size']}", by_repeat(g, lambda r: search_seconds(r) / r.report["predicted_seconds"]), band, gap_of(g), form="{:.1e}") for g in groups]


def tuning_grows(results, known):
    """The ratio of times / the ratio of sizes, for the problems with the same number of steps. It is 1 if time grows in proportion to size."""
    for machine in dict.fromkeys(g["machine"] for g in results["fig24"].groups.values()):
        groups = sorted(results["fig24"].select(machine=machine, search="exhaustive"), key=lambda g: size_bytes(g["size"]))
        groups = [g for g in groups if str(g["nt"]) == str(groups[-1]["nt"])]
        if len(groups) > 1:
            first, last = groups[0], groups[-1]
            sizes = size_bytes(last["size"]) / size_bytes(first["size"])
            yield compare(f"{machine}, {last['size']} / {first['size']}, over the ratio of sizes", last, first, lambda r: search_seconds(r) / (sizes if r.params["size"] == last["size"] else 1), near(1.0), timed=False)


def table2_equal(results, known):
    for name, ours, given, same in table2_rows(results["table2"], known["table2"]):
        gap = ours if isinstance(ours, str) else ""  # not run, or why it failed
        yield Part(f"{name}: {'equal' if same else gap or f'{ours} instead of {given}'}", gap=gap, settled=CONFIRMED if same else "" if gap else REFUTED)


def _devices(results, algorithm, device):
    """The runs of manual choice and of Blk-Tune, whose quotient is Blk-Tune's gain."""
    return [results["devices"].one(algorithm=algorithm, device=device, tuner=t) for t in ("manual", "blk")]


def gain_of_three(results, known):
    return [grows(f"gain with aio3y / with aio5y, {d} device", _devices(results, "skewed-y", d), _devices(results, "skewed-min", d), seconds) for d in ("slow", "fast")]


def gain_of_crest6(results, known):
    """At each size that both have."""
    plan = results["fig22"]

    def of(machine, blk):
        return [plan.one(machine=machine, algorithm=blk["algorithm"], size=blk["size"], tuner=t) for t in ("manual", "blk")]

    both = [g for g in plan.select(machine="crest6", tuner="blk") if plan.one(machine="crest4", algorithm=g["algorithm"], size=g["size"], tuner="blk")]
    return [grows(f"gain with the larger DRAM / with the smaller one, {SHORT[g['algorithm']]} {g['size']}", of("crest6", g), of("crest4", g), seconds) for g in both]
