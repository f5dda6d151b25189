# SPDX-License-Identifier: BSD-3-Clause
"""The table of findings: what is claimed, where, with which published number, and what decides it. Rows in the papers' order, then ours.
A file of this folder has the comparisons of one family of rows; verdicts.py decides them."""
from analysis.claim import TOLERANCE, Claim, near, percent
from analysis.claims.comparing import COMMITS, DRAM_RATIO, FAST_MAPPING, FLAT, PREDICTION_ERROR, REGRET, VISIBLE
from analysis.claims.hhrt import hhrt_one, hhrt_optimum, hhrt_speed, ktable_speed, near_loss
from analysis.claims.methods import before_after, commits, cost_after, cost_before, cost_with, cost_without, fewest_reads, flat_bandwidth, io_shares, io_shares_after, mmap_of_aio, mmap_of_aio_after, order, padded, read_factor, swap_unstable, temporal_blocking, useful_bandwidth, write_factor
from analysis.claims.ours import counters_agree, prediction, regret, stream_faster, sweep_visible
from analysis.claims.sizes import aio_mmap, aio_mmap_band, difference_grows, fixed_dram, flat_speed, mmap_killed
from analysis.claims.tuners import blk_bytes, blk_time, blk_time_band, five_below_three, five_faster, gain_of_three, io_time, manual_longer, manual_longer_band, table2_equal, tuning_grows, tuning_share, update_dominates, y_cheaper
from analysis.claims.versions import blocks_beat, deteriorate, division, enough_fast, fastest_versions
from analysis.claims.wavefront import conversion, corner_copies, wave_chain, wave_chain_band, wave_frontier, wave_frontier_band, wave_rows, wave_slower, wave_tile
from analysis.effects import LEAST_PAIRS

IWAPT, JAPANESE, SLIDES, OURS = "iwapt2016", "japanese", "slides", "ours"
MATCH = f"inside the published value or range widened by {percent(TOLERANCE)}"
GAIN = "the share of time that is gained is not below the published one by more than a tenth of it"
EACH = "each ratio of times "
ABOVE = f"each not above the published value by more than {percent(TOLERANCE)}"
SLOWED = "; at night the device is limited to 370 MiB/s each way, as slow beside two cores as the slides' flash beside crest4's"
MODEL = "; a model: bus and flash are as much slower than the kernel as the slides' at k = 1"

CLAIMS = (
    Claim("order", "With temporal blocking swap is slower than mmap, and mmap slower than aio", f"{IWAPT}, Fig. 5; {SLIDES}", "order", EACH + "below 1", ("fig05",), order()),
    Claim("order-large", "Swap is slower than mmap, and mmap than aio, three times larger and with the iBlock before the optimisation as well", f"{IWAPT}, Fig. 5; {SLIDES}", "order", EACH + "below 1", ("fig05-large",), order("fig05-large")),
    Claim("temporal", "Temporal blocking shortens an out-of-core run with every method", f"{IWAPT}, Fig. 5; {SLIDES}", "order", EACH + "below 1", ("fig05",), temporal_blocking),
    Claim("cost-without", "Without temporal blocking swap takes 53.8 times as long as normal execution", f"{SLIDES}, Result without Temporal blocking", "53.8", "time a step " + MATCH + "; mmap and aio are printed beside it", ("fig05",), cost_without),
    Claim("cost-with", "With temporal blocking and the tuned iBlock it takes little more: aio 1.51, mmap 2.02 times", f"{IWAPT}, section II-B; {SLIDES}, Before/After tuning", "1120 / 740; 1492 / 740 s", ABOVE, ("fig05",), cost_with),
    Claim("cost-after-large", "So it is three times larger", f"{IWAPT}, section II-B; {SLIDES}, Before/After tuning", "1120 / 740; 1492 / 740 s", ABOVE, ("before-after",), cost_after),
    Claim("cost-before-large", "With the iBlock before the optimisation aio takes 1.51, mmap 1.58 and swap 2.22 times as long as normal execution", f"{SLIDES}, Effect of Temporal blocking", "1.51; 1.58; 2.22", ABOVE, ("fig05-large",), cost_before),
    Claim("fewest-reads", "Of the three methods aio reads the fewest bytes", f"{SLIDES}, CPU Utilization Profile", "110.25, 209.70, 600.90 GiB", "each ratio of bytes below 1", ("fig05",), fewest_reads),
    Claim("read-factor", "mmap reads 1.90 times and swap 5.45 times the bytes of aio", f"{SLIDES}, CPU Utilization Profile", "1.90; 5.45", "each " + MATCH, ("fig05",), read_factor()),
    Claim("read-factor-large", "mmap reads 1.90 times and swap 5.45 times the bytes of aio, three times larger as well", f"{SLIDES}, CPU Utilization Profile", "1.90; 5.45", "each " + MATCH, ("fig05-large",), read_factor("fig05-large")),
    Claim("mmap-of-aio", "Before the optimisation mmap takes 4.5 to 22 % longer than aio", f"{SLIDES}, Profiles for three methods; Before/After tuning", "1929.86 / 1847.55 s; 2490.59 / 2036.13 s", "excess over 1 " + MATCH, ("fig05-large",), mmap_of_aio),
    Claim("mmap-of-aio-after", "After it mmap takes 33 % longer", f"{SLIDES}, Before/After tuning", "1492.25 / 1119.17 s", "excess over 1 " + MATCH, ("before-after",), mmap_of_aio_after),
    Claim("write-factor", "mmap writes 1.22 times the bytes of aio, the initial grid included", f"{SLIDES}, CPU Utilization Profile", "156.39, 128.19 GiB", MATCH, ("fig05",), write_factor),
    Claim("io-shares", "Before the optimisation 6.7 % of a Block's period are I/O with aio, 25 % with mmap, 50 % with swap", f"{SLIDES}, Profiles for three methods", "0.067; 0.251; 0.504", "share of the time with less than 90 % of the cores busy, each " + MATCH, ("fig05-large",), io_shares),
    Claim("io-shares-after", "After it 11.9 % are I/O with aio and 34.7 % with mmap", f"{SLIDES}, Before/After tuning", "0.119; 0.347", "share of the time with less than 90 % of the cores busy, each " + MATCH, ("before-after",), io_shares_after),
    Claim("swap-unstable", "The performance of swap is unstable", f"{JAPANESE}, section 2", "said", "logarithms of swap's times scatter more than aio's: Levene's test at the level of an interval", ("fig05",), swap_unstable),
    Claim("flat-bandwidth", "The bandwidth profile of aio is flat, those of mmap and swap are not", f"{SLIDES}, Flash SSD IO Bandwidth profile", "curves", "coefficient of variation of the useful bandwidth between Blocks' periods: aio's / theirs below 1", ("fig05-large",), flat_bandwidth),
    Claim("useful-bandwidth", "While there is I/O, aio moves the most useful bytes a second", OURS, "", "useful bytes a second while there is I/O: aio's / theirs above 1; nothing is said of what the device could do", ("fig05",), useful_bandwidth),
    Claim("fixed-dram", "At 16 times the DRAM aio reaches 87 % of normal execution", f"{IWAPT}, Fig. 6", "0.87", f"not below the published value by more than {percent(TOLERANCE)}, at {DRAM_RATIO} times the DRAM or more", ("fig06",), fixed_dram),
    Claim("flat-speed", "At fixed DRAM the speed of aio hardly falls with the problem size", f"{IWAPT}, Fig. 6", "curve", f"speed at the largest problem / at the first beyond the DRAM above {FLAT} (ours)", ("fig06",), flat_speed),
    Claim("aio-mmap", "aio is faster than mmap at every size, for 7 and 19 points", f"{IWAPT}, Figs. 7 and 8", "order", EACH + "below 1", ("fig07",), aio_mmap()),
    Claim("aio-mmap-share", "aio takes 50 to 60 % of mmap's time", f"{IWAPT}, section II-C", "0.50 to 0.60", "each " + MATCH, ("fig07",), aio_mmap_band()),
    Claim("aio-mmap-large", "aio is faster than mmap with eight times the DRAM as well", f"{IWAPT}, Figs. 7 and 8", "order", EACH + "below 1", ("fig07-large",), aio_mmap("fig07-large")),
    Claim("aio-mmap-share-large", "There aio takes 50 to 60 % of mmap's time as well", f"{IWAPT}, section II-C", "0.50 to 0.60", "each " + MATCH, ("fig07-large",), aio_mmap_band("fig07-large")),
    Claim("difference-grows", "The larger the problem, the farther mmap falls behind aio", f"{IWAPT}, Fig. 9", "trend", "mmap / aio at the largest size, over that at the smallest, above 1", ("fig07",), difference_grows),
    Claim("mmap-killed", "At 16 times the DRAM, 19 points, mmap is ended by the out-of-memory killer and aio is not", f"{IWAPT}, section II-C", "killed", f"killed in each of at least {LEAST_PAIRS} runs and aio ended; one run on mmap that ends is enough against it", ("largest",), mmap_killed),
    Claim("enough-fast", "With enough DRAM mmap1 and mmap1+opt are fast", f"{IWAPT}, Fig. 12", "said", f"time on mmap / on plain memory below {FAST_MAPPING} (ours)", ("enough",), enough_fast),
    Claim("deteriorate", "With half of the DRAM that they need, mmap1 and mmap1+opt deteriorate", f"{IWAPT}, Fig. 12", "said", "time a step without enough DRAM / with it above 1", ("fig12",), deteriorate),
    Claim("blocks", "On a mapping with half of the DRAM, every version through Blocks beats both that work on the mapping", f"{IWAPT}, Fig. 12", "said", EACH + "below 1", ("fig12",), blocks_beat("x2")),
    Claim("fastest", "Of the versions of algorithm-2, aio3y and aio5y are the fastest", f"{IWAPT}, Fig. 12", "said", "each of the two / each of the others below 1", ("fig12",), fastest_versions),
    Claim("typical-size", "The typical block size is larger than any Block really is", f"{IWAPT}, Fig. 16", "drawn", "exact / typical bytes below 1 (counted)", ("divisions",), division("16")),
    Claim("balanced", "Where bt is small beside the Blocks, the balanced division needs the smaller Block", f"{IWAPT}, Fig. 17", "drawn", "largest Block, balanced / unbalanced, below 1 (counted)", ("divisions",), division("17")),
    Claim("unbalanced", "Where the last Block carries the overlap of bt, an unbalanced division needs the smaller Block", f"{IWAPT}, Fig. 18", "drawn", "largest Block, unbalanced / balanced, below 1 (counted), cut along z; along y memext's Blocks have room for the overlap in each", ("divisions",), division("18")),
    Claim("blk-time", "Blk-Tune's choice is faster than manual choice and Naive-Tune's", f"{IWAPT}, Fig. 19", "order", EACH + "below 1" + SLOWED, ("fig19",), blk_time),
    Claim("blk-time-share", "Blk-Tune takes 68 to 73 % of the time of manual choice and 75 to 80 % of Naive-Tune's", f"{IWAPT}, Fig. 19", "0.68 to 0.73; 0.75 to 0.80", "each " + MATCH + SLOWED, ("fig19",), blk_time_band),
    Claim("blk-bytes", "Blk-Tune's choice moves fewer bytes than manual choice and Naive-Tune's, and no plan that was run moves fewer than it", f"{IWAPT}, Fig. 21", "order", "bytes of the kernel's counter, blk / manual and / naive below 1, / each other plan that was run, those outside its search too, at most 1 (counted)", ("fig19",), blk_bytes),
    Claim("aio5y-bytes", "aio5y moves fewer bytes than aio3y", f"{IWAPT}, Fig. 21", "order", "bytes of the kernel's counter, ratio below 1 (counted)", ("fig19",), five_below_three),
    Claim("aio5y-time", "aio5y is faster than aio3y", f"{JAPANESE}, section 6.3", "order", EACH + "below 1" + SLOWED, ("fig19",), five_faster),
    Claim("manual-longer", "With manual choice runs take longer than with Blk-Tune at every size", f"{IWAPT}, Figs. 22 and 23; {JAPANESE}, section 6.3", "order", EACH + "above 1" + SLOWED, ("fig22",), manual_longer),
    Claim("manual-longer-share", "They take 5.6 to 13.5 % longer on crest4 and 12.9 to 41.9 % on crest6", f"{JAPANESE}, section 6.3", "crest4 5.6 to 7.7 (aio5y), 7.3 to 13.5 % (aio3y); crest6 13.4 to 20.6, 12.9 to 41.9 %", "each excess over 1 " + MATCH + "; one machine with two limits of DRAM stands for both" + SLOWED, ("fig22",), manual_longer_band),
    Claim("io-time", "With Blk-Tune the I/O times of aio5y are 58 to 78 % of those with manual choice", f"{IWAPT}, section VI-D", "0.58 to 0.78", "each " + MATCH + SLOWED, ("fig22",), io_time),
    Claim("update-dominates", "The computation takes most of the time, with manual choice and with Blk-Tune", f"{JAPANESE}, section 6.3", "said", "time of update / of buf2blk, blk2buf and blk2blk together, each above 1" + SLOWED, ("fig22",), update_dominates),
    Claim("y-cheaper", "A cut in y costs fewer bytes than one in z", f"{JAPANESE}, sections 6.1 and 6.2", "said", "predicted bytes of three Blocks, cut in y / in z, below 1 (counted)", ("divisions",), y_cheaper),
    Claim("gain-aio3y", "Blk-Tune gains more with aio3y than with aio5y, on the slower and on the faster machine", f"{JAPANESE}, section 6.3", "order", "(manual / blk with aio3y) / (manual / blk with aio5y) above 1, on a device slowed down and not", ("devices",), gain_of_three),
    Claim("tuning-share", "The exhaustive search takes about 0.1 % of the time that is predicted for the computation", f"{IWAPT}, Fig. 24", "0.001", f"search / predicted run not above the published value by more than {percent(TOLERANCE)}, 128 to 512 GiB; the paper's share is of measured runs", ("fig24",), tuning_share),
    Claim("tuning-grows", "Tuning time grows in proportion to the problem size", f"{IWAPT}, section VI-E and Fig. 24", "trend", "ratio of times over the ratio of sizes, of the smallest and the largest problem with the same steps, inside 1 widened by " + percent(TOLERANCE), ("fig24",), tuning_grows),
    Claim("before-after", "Optimisation of the computation shortens the run", f"{SLIDES}, Before/After tuning", "order", EACH + "below 1; the published 0.55 (aio) and 0.59 (mmap) are the gain of three changes, of which the shape of the iBlock alone is made here", ("before-after",), before_after),
    Claim("padded", "The padded layout makes the computation faster", f"{SLIDES}, Before/After tuning; {IWAPT}, Fig. 4", "said", "speed with padded rows / without above 1", ("layout",), padded),
    Claim("table2", "Blk-Tune's parameters in Table II, Naive-Tune's log and the bytes of the slides come out as published", f"{IWAPT}, Table II; {SLIDES}", "Table II", "equal (counted)", ("table2",), table2_equal),
    Claim("hhrt-speed", "With two tiers a problem of 1.5 times the DRAM runs, with the best k, at the 55 % of the speed inside that HHRT reaches with three", "hhrt, Results of Step 2", "0.55", f"not below the published value by more than {percent(TOLERANCE)}; HHRT: 1.5 times the host's memory, of the speed inside the GPU; here DRAM and flash", ("hhrt",), hhrt_speed),
    Claim("hhrt-k1", "Without temporal blocking it falls to 3.4 % of that", "hhrt, table of k", "2.68 / 79.3", f"speed of k = 1 / of the best k not above the published value by more than {percent(TOLERANCE)}; two tiers in the place of three", ("hhrt",), hhrt_one),
    Claim("hhrt-optimum", "The best temporal block size lies between: small ones swap, large ones recompute", "hhrt", "table of k", "time a step, best k between / smallest and / largest below 1", ("hhrt",), hhrt_optimum),
    Claim("hhrt-weak", "Weak scaling over nodes, each with a GPU and two SSDs, is fairly good", "hhrt", "drawn", "not decided on one machine", ("weak",), lambda results, known: [], "several nodes, each with a GPU and flash"),
    Claim("ktable-device", "Model on the accelerator `host`: with the best k problems of 1.33 and 4 times the device's memory run at 95 and 84 % of the speed inside it", "hhrt", "141 / 149; 125 / 149", f"each not below the published value by more than {percent(TOLERANCE)}" + MODEL, ("ktable",), ktable_speed(near_loss, 16, 48)),
    Claim("ktable-flash", "Model on the accelerator `host`: problems of 1.5 and 3 times the host's memory run, from flash, at 53 and 12 %", "hhrt", "79.3 / 149; 17.7 / 149", f"each not below the published value by more than {percent(TOLERANCE)}" + MODEL, ("ktable",), ktable_speed(near, 96, 192)),
    Claim("wave-conversion", "Conversion of a row-major file into the frontier layout costs more than into the block layout; back it costs the same", "wavefront, Fig. 4", "drawn", "frontier / block, of the matrix that is read: into it above 1, out of it " + MATCH.replace("the published value or range", "1"), ("fig4w",), conversion),
    Claim("wave-rows", "A pipelined wavefront on row-major matrices is at best ten times slower than the sequential program", "wavefront, Fig. 7a", "10", f"not below the published value by more than {percent(TOLERANCE)}", ("fig7a",), wave_rows),
    Claim("wave-frontier", "The frontier layout is faster than the block layout", "wavefront, Fig. 7a", "order", "ratio of times, each with its best tile, below 1", ("fig7a",), wave_frontier),
    Claim("wave-frontier-share", "It improves on it by 20 %", "wavefront, Fig. 7a", "0.80", GAIN, ("fig7a",), wave_frontier_band),
    Claim("wave-tile", "There is a best tile between the smallest and the largest", "wavefront, Fig. 7a", "drawn", "time, best tile between / smallest and / largest below 1", ("fig7a",), wave_tile),
    Claim("wave-chain", "Chained waves are faster", "wavefront, Fig. 7b", "order", "ratio of times below 1", ("fig7b",), wave_chain),
    Claim("wave-chain-share", "Chaining gains 20 %", "wavefront, Fig. 7b", "0.80", GAIN, ("fig7b",), wave_chain_band),
    Claim("wave-slower", "With several iterations under way each takes longer", "wavefront, section 6", "said", "time of an iteration, of several that are chained / of one alone, above 1", ("fig7b",), wave_slower),
    Claim("wave-corners", "The copied corners take the space of Table 1", "wavefront, Table 1", "512 B, 32 KiB, 2 MiB, 128 MiB", "equal (counted)", ("table1w",), corner_copies),
    Claim("stream", "stream is faster than the papers' algorithm-1 and aio5y at every size", OURS, "", EACH + "below 1", ("fig06",), stream_faster),
    Claim("sweep", "The heat maps show the sweep: residency follows the computation", OURS, "", f"correlation above {VISIBLE} (ours)", ("advice",), sweep_visible),
    Claim("commits", "A commit after each sweep costs mmap little", OURS, "", f"time with / without at most {COMMITS} (ours)", ("fig05",), commits),
    Claim("counters", "memext's own counters, CalcTrans, /proc/self/io and the block device agree on the bytes of aio and uring", OURS, "", "own, CalcTrans and process equal in every run, the device never short of them and close in the median (counted)", (), counters_agree),
    Claim("prediction", "The predicted seconds of runs on aio and uring are right within 15 % in the median", OURS, "", f"interval of the median error below {percent(PREDICTION_ERROR)}; predicted with rates measured in the second before each run, where they were, else with those of the beginning", (), prediction),
    Claim("regret", "The tuner's choice takes at most 5 % longer than the best of all plans that were run", OURS, "", f"time of blk / of the best plan by the other repeats, below {REGRET}; of choices with {LEAST_PAIRS} repeats, where there are any", (), regret),
)  # fmt: skip
