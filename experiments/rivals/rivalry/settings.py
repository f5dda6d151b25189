# SPDX-License-Identifier: BSD-3-Clause
"""Settings of each rival that are tried."""
from rivalry.passes import fused_bytes
from rivalry.table import MIB, RIVALS


def fused_settings(case, dram, most_k=32):
    """[(k, slab, keep, share of the DRAM)]: for every k the widest slab that fits; those that compute least in vain come first."""
    found = []
    for k in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        for share, keep in ((0.6, False), (0.6, True), (0.8, False), (0.8, True), (0.4, False)):
            slab = 0
            while slab < case.shape[0] and fused_bytes(case.plane_bytes, case.fields, case.h, k, slab + 1, keep) <= share * dram:
                slab += 1
            if slab > 0 and k <= most_k:
                found.append({"k": k, "slab": slab, "keep": keep, "share": share})
    return found


def without(settings, *names):
    return {k: v for k, v in settings.items() if k not in names}


def variants_of_fused(case, dram, ahead):
    """(settings to begin with, function from the best of them to more)"""
    every = fused_settings(case, dram)
    # Four of them at most, so that five settings also have one that is made from the best: of two shares those with the least (computed in vain) x (passes).
    every.sort(key=lambda s: (1 + (s["k"] - 1) * case.h / s["slab"]) * (1 + 8 / s["k"]))
    first = [{**s, "ahead": ahead} for share in (0.6, 0.8) for s in [s for s in every if s["share"] == share and not s["keep"]][:2]]

    def more(best):
        same_k = [{**s, "ahead": ahead} for s in every if s["k"] == best["k"] and (s["share"], s["keep"]) != (best["share"], best["keep"])]
        return [{**best, "ahead": True, "behind": True}, *same_k, {**best, "ahead": not ahead}]

    return first, more


def dask_blocks(case, dram, k, threads):
    """Planes of a block so that what all threads have in hand takes about half of the DRAM; at least the halo."""
    in_hand = 2 * case.fields * threads
    return max(case.h * k, int(0.5 * dram / case.plane_bytes / in_hand) - 2 * k * case.h, 1)


def settings_of(rival, case, dram, threads):
    """(list of settings, function that makes more from the best): at least five in all."""
    work, steps, _ = RIVALS[rival]
    none = lambda best: []
    if work == "memext":
        first = [{"words": []}, {"words": ["--backend", "aio"]}, {"words": [], "calibrated": True}, {"words": ["--commit-every", "0"], "calibrated": True},
                 {"words": ["--algorithm", "redundant"]}]  # fmt: skip
        return first + ([{"words": ["--in-place"]}] if case.leapfrog else []), none
    if work == "umap":
        first = [{"page": page, "slab": slab, "share": share, "fillers": fill} for page, slab, share, fill in
                 ((256 << 10, 1, 0.7, 4), (MIB, 1, 0.7, 2), (MIB, 2, 0.85, 2), (4 * MIB, 2, 0.7, 2), (64 << 10, 1, 0.7, 8))]  # fmt: skip
        return first, none
    if work == "dask":
        blocks = lambda k, *ways: [{"k": k, "block": b, "chunk": b, "overlap": o} for part, o in ways for b in [max(1, dask_blocks(case, dram, k, threads) // part)]]
        least = lambda k: 1 if k == 1 else case.h * k
        other = lambda best: [{**best, "chunk": max(1, best["chunk"] // 4)}, *({**best, "block": b, "chunk": b} for b in (max(least(best["k"]), best["block"] // 2), best["block"] * 2, best["block"] * 4))]
        if steps == "one":
            return blocks(1, (1, False), (1, True), (2, False), (2, True)), other
        # map_overlap takes the most memory; of the depths those first that a small DRAM allows.
        first = [s for k, *ways in ((4, (1, False)), (2, (1, False), (1, True)), (8, (1, False)), (16, (1, False)), (4, (1, True)), (8, (1, True)), (32, (1, False))) for s in blocks(k, *ways)]
        return first, other
    if work == "h5py" and steps == "one":
        wide = [s for s in (4, 16, 64) if fused_bytes(case.plane_bytes, case.fields, case.h, 1, s, True) < 0.6 * dram] or [1, 2]
        first = [{"k": 1, "slab": s, "keep": keep} for s in wide for keep in (True, False)]
        return first, lambda best: [{**best, "ahead": True}, {**best, "ahead": True, "behind": True}]
    if work == "swap" and steps == "one":
        first = [{"slab": 2, "alternate": False, "ahead": True}, {"slab": 8, "alternate": True}, {"slab": 8, "alternate": True, "huge": True}, {"slab": 8, "alternate": False},
                 {"slab": 8, "alternate": False, "behind": True}]  # fmt: skip
        return first, none
    if steps == "one":
        return [{"slab": s, "alternate": a, "advice": v} for s, a, v in
                ((8, False, "normal"), (8, True, "normal"), (32, True, "normal"), (8, True, "sequential"), (8, True, "random"))] + [{"slab": 8, "alternate": True, "ahead": True}], none  # fmt: skip
    return variants_of_fused(case, dram, ahead=work != "swap")
