/* SPDX-License-Identifier: BSD-3-Clause */
/* Power loss at any moment: a run is recorded call by call, and whatever the storage may hold after a loss of
 * power (powerloss.h) is resumed.
 *
 * Pass condition, for every image:
 *   - the resumed run ends with status 0 and the checksum of the undisturbed run, and began at or behind the
 *     newest step whose commit had returned;
 *   - or, only if no commit had returned, it is refused: status 2, or 3 where the very first superblock is
 *     torn and no other is there;
 *   - or the run had ended and removed its store, and its output is there;
 *   - the published output is absent (or the former one) or whole.
 *
 * MEMEXT_POWERLOSS=N replays N images of redundant, N and two fifths of stream in its three forms, and half
 * of N of each with hashes (default 1000 with MEMEXT_TEST_LONG, else fewer). MEMEXT_POWERLOSS_SEED=N draws
 * others. MEMEXT_POWERLOSS_KEEP=FILE keeps the image that does not pass. */
#include "cli/options.h"
#include "cli/signals.h"
#include "core/store.h"
#include "effort.h"
#include "note/note.h"
#include "powerloss.h"

#include <dirent.h>
#include <jansson.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/statvfs.h>

/* How the run begins that is recorded. */
enum start {
    FRESH,
    AFTER_STOP, /* of a run that was asked to stop, after two commits */
    AFTER_KILL, /* of a run that was killed anywhere: what it wrote is in the page cache */
};

struct scenario {
    const char *name;
    const char *commits; /* words of the run */
    enum start start;
    const char *resume; /* words of the second run, of one that is not fresh */
    bool file;          /* the place is a file by name: its store stays when the run is done */
    bool output;
    bool overwrite; /* of a file that is there */
};

#define TINY "--commit-every 0.000001"

static const struct scenario scenarios[] = {
    {"two Buffers", "--commit-every 0", FRESH, NULL, false, false, false},
    {"three Buffers", TINY, FRESH, NULL, false, false, false},
    {"commits as chosen", "", FRESH, NULL, false, false, false},
    {"commits now and then", "--commit-every 0.004", FRESH, NULL, true, true, false},
    {"two Buffers, output", "--commit-every 0", FRESH, NULL, false, true, false},
    {"three Buffers, output replaced", TINY, FRESH, NULL, true, true, true},
    {"two Buffers, stopped, resumed", "--commit-every 0", AFTER_STOP, "", false, true, false},
    {"three Buffers, stopped, resumed", TINY, AFTER_STOP, "", true, false, false},
    {"two Buffers, killed, resumed", "--commit-every 0", AFTER_KILL, "", false, false, false},
    {"three Buffers, killed, resumed", TINY, AFTER_KILL, TINY, false, true, false},
    {"two Buffers, killed, resumed with three", "--commit-every 0", AFTER_KILL, TINY, false, false, false},
    {"three Buffers, killed, resumed with every sweep", TINY, AFTER_KILL, "--commit-every 0", true, false,
     false},
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* Primes, and no bt divides nt. A + stands for a blank within a word. */
struct algorithm {
    const char *name, *problem, *plan;
    int share; /* of the images, in percent */
};

static const char *const replays[] = {
    "--backend mmap",
    "--backend mmap --commit-every 0",
    "--backend mmap --commit-every 0.000001",
    "--backend fault:mmap --fault reorder=1",
};
enum { REPLAYS = sizeof replays / sizeof replays[0] };

static struct {
    char root[200], store[256], place[256], output[256], image[256], json[256], said[256];
    char expected[17]; /* checksum of the undisturbed run */
    struct image disk, published, whole;
    int images, refused, resumed_first, resumed_later, gone;
    uint64_t seen[1 << 16]; /* hashes of images that were tried already */
} t;

/* ------------------------------------------------------------------ the command in this process */

static void split(char *text, char *argv[64], int *argc) {
    for (char *rest, *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        cr_assert_lt(*argc, 63);
        for (char *c = word; *c != 0; c++)
            if (*c == '+') *c = ' ';
        argv[(*argc)++] = word;
    }
    argv[*argc] = NULL;
}

/* Its words to the user go to a file, for they are wanted only when a check fails. */
__attribute__((format(printf, 1, 2))) static int memext_run(const char *format, ...) {
    char text[2048], *argv[64];
    int argc = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    split(text, argv, &argc);
    int error = dup(STDERR_FILENO), said = open(t.said, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(said, STDERR_FILENO);
    mx_stop = 0;
    mx_signals_catch();
    int status = mx_cmd_run(argc, argv);
    mx_stop = 0;
    dup2(error, STDERR_FILENO);
    close(error);
    close(said);
    return status;
}

static const char *said(void) {
    static char text[600];
    int fd = open(t.said, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    close(fd);
    return text;
}

static int64_t read_report(char checksum[17]) {
    json_t *o = json_load_file(t.json, 0, NULL);
    const char *sum = json_string_value(json_object_get(o, "checksum"));
    int64_t from = json_integer_value(json_object_get(o, "resumed_from"));
    snprintf(checksum, 17, "%s", sum != NULL ? sum : "");
    json_decref(o);
    return from;
}

/* ------------------------------------------------------------------ what is recorded */

static int64_t step_of(const char *data, uint64_t at, uint64_t bytes, bool *superblock) {
    const struct mx_superblock *s = (const struct mx_superblock *)data;
    struct mx_note note;
    *superblock = at < MX_DATA_OFFSET_BYTES;
    if (!*superblock || bytes < sizeof *s || s->note_bytes == 0 || s->note_bytes > MX_NOTE_BYTES) return -1;
    return mx_note_parse((const char *)s->note, s->note_bytes, NULL, &note) == 0 ? note.time : -1;
}

/* The newest step whose commit had returned before the event; -1 = none had. */
static int64_t promised(int when) {
    int64_t step = -1;
    for (int i = 0; i < record.n; i++)
        if (record.ops[i].end < when && record.ops[i].step > step) step = record.ops[i].step;
    return step;
}

static bool superblock_returned(int when) {
    for (int i = 0; i < record.n; i++)
        if (record.ops[i].superblock && record.ops[i].end < when) return true;
    return false;
}

static void set_places(const struct scenario *s) {
    snprintf(t.store, sizeof t.store, "%s/run/memext.store", t.root);
    snprintf(t.place, sizeof t.place, "%s/run%s", t.root, s->file ? "/memext.store" : "");
    snprintf(t.output, sizeof t.output, "%s/out/result.npy", t.root);
    snprintf(record.paths[STORE], sizeof record.paths[STORE], "%s", t.store);
    snprintf(record.paths[OUTPUT], sizeof record.paths[OUTPUT], "%s", t.output);
    snprintf(record.paths[STORE_DIRECTORY], sizeof record.paths[0], "%s/run", t.root);
    snprintf(record.paths[OUTPUT_DIRECTORY], sizeof record.paths[0], "%s/out", t.root);
    unlink(t.store);
    unlink(t.output);
}

static void run_recorded(int status, const struct algorithm *a, const char *words, bool resume, int seed) {
    static struct mx_sys table;
    table = recorder();
    mx_sys = &table;
    int got = memext_run("run %s -d %s --backend fault:mmap --fault sys=1,reorder=1,seed=%d --dram 64MiB "
                         "--threads 2 --quiet %s %s",
                         resume ? "--resume" : a->problem, t.place, seed, resume ? "" : a->plan, words);
    mx_sys = &mx_sys_kernel;
    cr_assert_eq(got, status, "%s, %s: status %d: %s", a->name, words, got, said());
    cr_assert(record.trouble[0] == 0, "%s", record.trouble);
}

static bool is_commit(const struct op *o) { return o->step >= 0; }

/* While a superblock is being written, or soon after: not that of the last commit. */
static int draw_kill(void) {
    int n = 0;
    for (int i = 0; i < record.n; i++) n += is_commit(&record.ops[i]);
    int commit = 1 + below(2 * n / 3);
    for (int i = 0; i < record.n; i++) {
        const struct op *o = &record.ops[i];
        if (is_commit(o) && commit-- == 0) return o->begin + 1 + below(o->end - o->begin + below(2) * 20);
    }
    return 0;
}

/* Returns the event from which on power is lost. */
static int record_run(const struct algorithm *a, const struct scenario *s, int seed) {
    char output[400] = "", words[600];
    if (s->output) snprintf(output, sizeof output, "-o %s%s", t.output, s->overwrite ? " --overwrite" : "");
    if (s->overwrite) cr_assert_eq(close(open(t.output, O_CREAT | O_WRONLY, 0666)), 0);
    snprintf(words, sizeof words, "%s %s", s->commits, s->start == FRESH ? output : "");
    if (s->start == AFTER_STOP) record.stop_after = 3; /* the one of the initial grid is the first */
    run_recorded(s->start == AFTER_STOP ? MX_EXIT_INTERRUPTED : MX_EXIT_OK, a, words, false, seed);
    if (s->start == FRESH) return 0;
    if (s->start == AFTER_KILL) {
        int when = draw_kill();
        record_kill(when);
        image_draw(&t.disk, STORE, record.events, &modes[1]);
        t.disk.named = true;
        image_write(&t.disk, t.store);
    }
    int first = record.events;
    snprintf(words, sizeof words, "%s %s", s->resume, output);
    run_recorded(MX_EXIT_OK, a, words, true, seed + 1);
    return first;
}

/* What was published is the state that every image of it is compared with. */
static void take_output(const struct scenario *s) {
    if (!s->output) return;
    image_draw(&t.whole, OUTPUT, NEVER, &modes[1]);
    char *text = malloc(t.whole.size + 1);
    int fd = open(t.output, O_RDONLY);
    ssize_t n = pread(fd, text, t.whole.size + 1, 0);
    close(fd);
    cr_assert_eq(n, (ssize_t)t.whole.size, "the record of the output is not what was published");
    cr_assert(memcmp(text, t.whole.bytes, t.whole.size) == 0, "the record of the output is not its content");
    free(text);
}

/* ------------------------------------------------------------------ one image */

struct moment {
    const struct algorithm *algorithm;
    const struct scenario *scenario;
    const struct mode *mode;
    const char *replay;
    int when;
    int64_t promised;
};

__attribute__((format(printf, 2, 3))) static void violated(const struct moment *m, const char *format, ...) {
    char text[800];
    const char *keep = getenv("MEMEXT_POWERLOSS_KEEP");
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (keep != NULL) image_write(&t.disk, keep);
    cr_assert(false,
              "%s, %s, power lost before event %d of %d, %s is there, step %lld was committed, "
              "resumed with %s: %s%s",
              m->algorithm->name, m->scenario->name, m->when, record.events, m->mode->name,
              (long long)m->promised, m->replay, text,
              keep != NULL ? "" : " (MEMEXT_POWERLOSS_KEEP=FILE keeps the image)");
}

static bool output_is_whole(void) {
    if (t.published.size != t.whole.size) return false;
    return memcmp(t.published.bytes, t.whole.bytes, t.whole.size) == 0;
}

static void check_refusal(const struct moment *m, int status) {
    const bool torn = status == MX_EXIT_IO && !superblock_returned(m->when);
    if (m->promised >= 0) violated(m, "status %d: %s", status, said());
    if (status != MX_EXIT_REFUSED && !torn) violated(m, "status %d, not a refusal: %s", status, said());
    t.refused++;
}

static void check_result(const struct moment *m) {
    char checksum[17];
    int64_t from = read_report(checksum);
    if (strcmp(checksum, t.expected) != 0)
        violated(m, "resumed from step %lld, the checksum is %s, not %s", (long long)from, checksum,
                 t.expected);
    if (from < m->promised) violated(m, "resumed from step %lld", (long long)from);
    *(from > 0 ? &t.resumed_later : &t.resumed_first) += 1;
}

static bool store_removed(int when) {
    for (int i = 0; i < record.n; i++)
        if (record.ops[i].kind == UNNAME && record.ops[i].role == STORE && record.ops[i].begin < when)
            return true;
    return false;
}

static void replay(const struct moment *m) {
    if (!t.disk.named && store_removed(m->when)) {
        if (m->scenario->output && !t.published.named) violated(m, "neither store nor output is there");
        t.gone++;
        return;
    }
    image_write(&t.disk, t.image);
    int status = memext_run("run --resume -d %s --dram 64MiB --threads 1 --quiet --json %s %s", t.image,
                            t.json, m->replay);
    if (status == MX_EXIT_OK)
        check_result(m);
    else
        check_refusal(m, status);
}

/* Was this very image tried already, with the same promise? */
static bool is_new(uint64_t hash) {
    const size_t n = sizeof t.seen / sizeof t.seen[0];
    for (size_t i = 0; i < n; i++) {
        uint64_t *slot = &t.seen[(hash + i) % n];
        if (*slot == hash) return false;
        if (*slot != 0) continue;
        *slot = hash;
        return true;
    }
    return true;
}

static bool try_image(struct moment *m) {
    m->mode = &modes[below(MODES)];
    m->replay = replays[below(4) ? 0 : below(REPLAYS)];
    image_draw(&t.disk, STORE, m->when, m->mode);
    image_draw(&t.published, OUTPUT, m->when, m->mode);
    uint64_t hash = image_hash(&t.disk, (uint64_t)m->promised + 2);
    if (t.published.named) hash = image_hash(&t.published, hash);
    if (!is_new(hash != 0 ? hash : 1)) return false;
    if (t.published.named && !output_is_whole()) violated(m, "the output is there in part");
    replay(m);
    t.images++;
    return true;
}

/* ------------------------------------------------------------------ all images of a run */

/* Half of the moments lie around the flushes and superblocks, where the order counts. */
static int draw_moment(int first) {
    if (below(2)) return first + below(record.events + 1 - first);
    for (int tries = 0; tries < 1000; tries++) {
        const struct op *o = &record.ops[below(record.n)];
        int when = (below(2) ? o->begin : o->end) + below(7) - 3;
        if ((o->superblock || o->kind == FLUSH) && o->begin >= first && when >= first &&
            when <= record.events)
            return when;
    }
    return first;
}

enum { LAST_EVENTS = 6, LAST_TRIES = 48 };

static int replay_record(const struct algorithm *a, const struct scenario *s, int images) {
    struct moment m = {.algorithm = a, .scenario = s};
    const int before = t.images;
    memset(t.seen, 0, sizeof t.seen);
    set_places(s);
    record_clear();
    int first = record_run(a, s, 1 + below(1 << 20));
    take_output(s);
    for (int tries = 0; t.images - before < images && tries < 20 * images + LAST_TRIES; tries++) {
        /* At the end names count: of the output, and of the store that is removed. */
        const bool last = tries < LAST_TRIES && t.images - before < (images + 3) / 4;
        m.when = last ? record.events - tries % LAST_EVENTS : draw_moment(first);
        m.promised = promised(m.when);
        try_image(&m);
    }
    return record.events - first;
}

/* A run that is killed is killed at several moments. */
static void replay_scenario(const struct algorithm *a, const struct scenario *s, int images) {
    const int records = s->start == AFTER_KILL ? 4 : 1, before = t.images;
    int events = 0;
    for (int i = 1; i <= records; i++)
        events += replay_record(a, s, images * i / records - (t.images - before));
    printf("  %-48s %5d images of %d events\n", s->name, t.images - before, events);
    fflush(stdout);
}

static int count_descriptors(void) {
    int n = 0;
    DIR *all = opendir("/proc/self/fd");
    while (readdir(all) != NULL) n++;
    closedir(all);
    return n;
}

static int asked_for(const char *name) {
    const char *text = getenv(name);
    return text != NULL && atoi(text) > 0 ? atoi(text) : 0;
}

static void take_expected(const struct algorithm *a) {
    int status = memext_run("run %s --backend dram --dram 64MiB --threads 1 --verify --quiet --json %s",
                            a->problem, t.json);
    cr_assert_eq(status, MX_EXIT_OK, "%s", said());
    read_report(t.expected);
}

static void replay_all(const struct algorithm *a) {
    const int asked = asked_for("MEMEXT_POWERLOSS"), seed = asked_for("MEMEXT_POWERLOSS_SEED");
    const int images = (asked > 0 ? asked : mx_cases(1000, 4)) * a->share / 100;
    chance_state = seed > 0 ? (uint64_t)seed : 1;
    take_expected(a);
    t.images = t.refused = t.resumed_first = t.resumed_later = t.gone = 0;
    printf("%s\n", a->name);
    for (int i = 0; i < SCENARIOS; i++)
        replay_scenario(a, &scenarios[i], (images * (i + 1)) / SCENARIOS - t.images);
    printf("%s: %d images: %d resumed behind the first step, %d from it, %d refused before the first commit, "
           "%d done and removed\n",
           a->name, t.images, t.resumed_later, t.resumed_first, t.refused, t.gone);
    fflush(stdout);
    cr_assert_geq(t.images, images * 9 / 10, "too few different images were found");
}

/* ------------------------------------------------------------------ where */

/* Memory is fastest, and a mapping needs no storage. */
static bool make_root(const char *base) {
    struct statvfs s;
    if (base == NULL || statvfs(base, &s) != 0 || (uint64_t)s.f_bavail * s.f_frsize < 4 * MOST_FILE_BYTES)
        return false;
    snprintf(t.root, sizeof t.root, "%.180s/powerloss.XXXXXX", base);
    return mkdtemp(t.root) != NULL;
}

static void remove_root(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf --one-file-system '%s'", t.root);
    if (t.root[0] != 0 && system(command) != 0) fprintf(stderr, "%s could not be removed\n", t.root);
    t.root[0] = 0;
}

static void begin(void) {
    char path[256];
    if (!make_root("/dev/shm") && !make_root(getenv("MEMEXT_TEST_DIR")) && !make_root("build"))
        cr_skip_test(
            "there is no directory with 256 MiB of free space among /dev/shm, MEMEXT_TEST_DIR and build");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", t.root, i == 0 ? "run" : "out");
        cr_assert_eq(mkdir(path, 0777), 0);
    }
    snprintf(t.image, sizeof t.image, "%s/image", t.root);
    snprintf(t.json, sizeof t.json, "%s/report.json", t.root);
    snprintf(t.said, sizeof t.said, "%s/said", t.root);
    image_make(&t.disk);
    image_make(&t.published);
    image_make(&t.whole);
    record.step_of = step_of;
}

TestSuite(powerloss, .init = begin, .fini = remove_root);

Test(powerloss, redundant) {
    replay_all(&(struct algorithm){"redundant", "-n 13 11 17 -t 23 --coef 0.37,0.105",
                                   "--algorithm redundant --block 5 7 3", 100});
}

Test(powerloss, stream_whole_planes) {
    replay_all(&(struct algorithm){"stream, whole planes", "-n 13 11 17 -t 23",
                                   "--plan stream+by=11+bt=3+slab=2", 60});
}

Test(powerloss, stream_strips) {
    replay_all(&(struct algorithm){"stream, strips, faces in DRAM", "-n 11 13 17 -t 23 --dtype f32",
                                   "--plan stream+by=5+bt=3+slab=2+faces=dram", 40});
}

Test(powerloss, stream_side_file) {
    replay_all(&(struct algorithm){"stream, strips, faces in a side file",
                                   "-n 11 13 17 -t 23 --stencil edge19",
                                   "--plan stream+by=5+bt=3+slab=2+faces=side-file", 40});
}

static void need_integrity(void) {
    int status = memext_run("run -n 5 5 5 -t 2 -d %s/run --backend mmap --algorithm redundant --block 5 5 1 "
                            "--dram 64MiB --threads 1 --quiet --integrity",
                            t.root);
    if (status == MX_EXIT_OK) return;
    char why[600];
    snprintf(why, sizeof why, "%s", said());
    remove_root(); /* a test that is skipped has no end of its own */
    cr_skip_test("--integrity does not work here: %s", why);
}

Test(powerloss, redundant_with_hashes) {
    need_integrity();
    replay_all(&(struct algorithm){"redundant, hashes", "-n 13 11 17 -t 23",
                                   "--algorithm redundant --block 5 7 3 --integrity", 50});
}

Test(powerloss, stream_with_hashes) {
    need_integrity();
    replay_all(&(struct algorithm){"stream, strips, faces in a side file, hashes", "-n 11 13 17 -t 23",
                                   "--plan stream+by=5+bt=3+slab=2+faces=side-file --integrity", 50});
}

/* The command can be called again and again in one process: nothing is left open. */
Test(powerloss, nothing_is_left_open) {
    struct algorithm a = {"redundant", "-n 13 11 17 -t 23", "--algorithm redundant --block 5 7 3", 100};
    const struct scenario s = {"two Buffers", "--commit-every 0", FRESH, NULL, false, false, false};
    take_expected(&a);
    replay_scenario(&a, &s, 20);
    const int before = count_descriptors();
    const size_t bytes = mallinfo2().uordblks;
    replay_scenario(&a, &s, 100);
    cr_assert_eq(count_descriptors(), before, "descriptors are left open: %d, %d before", count_descriptors(),
                 before);
    printf("  bytes in use after 100 more runs: %zd more\n", (ssize_t)(mallinfo2().uordblks - bytes));
}
