/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as text. */
#include "effort.h"
#include "tune_tools.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* parse(print(plan)) = plan for random plans. */
Test(tune, plan_round_trip) {
    const char *const engines[] = {"iblock", "tiled", ""}, *const tuners[] = {"blk", "naive", "manual", ""};
    const char *const seams[] = {"", MX_SEAMS_IN_DRAM, MX_SEAMS_IN_FILE};
    for (int i = 0; i < 5000; i++) {
        struct mx_plan p, back;
        char line[MX_PLAN_LINE_BYTES];
        mx_why why;
        memset(&p, 0, sizeof p);
        strcpy(p.algorithm, mx_algorithms[pick(0, 7)]->name);
        strcpy(p.engine, engines[pick(0, 2)]);
        strcpy(p.tuner, tuners[pick(0, 3)]);
        strcpy(p.seams, seams[pick(0, 2)]);
        int64_t *numbers[] = {&p.by,   &p.bz,   &p.bt, &p.iy,     &p.iz,
                              &p.slab, &p.tile, &p.ct, &p.column, &p.ahead};
        for (int k = 0; k < 10; k++)
            *numbers[k] = pick(0, 2) == 0 ? 0 : pick(0, 1) ? pick(1, 5000) : INT64_MAX;
        p.threads = (int32_t)pick(0, 64);
        p.in_place = pick(0, 1);
        int err = mx_plan_parse(mx_plan_print(&p, line, sizeof line), &why, &back);
        cr_assert(err == 0, "%s: %s", line, why.text);
        cr_assert(memcmp(&p, &back, sizeof p) == 0, "%s", line);
    }
}

Test(tune, plan_parse_names_the_bad_word) {
    static const struct {
        const char *line, *word;
    } bad[] = {{"", "empty"},
               {"stram by=1", "'stram'"},
               {"stream by=0 bt=4", "'by=0'"},
               {"stream by=-3", "'by=-3'"},
               {"stream by=12x", "'by=12x'"},
               {"stream by=99999999999999999999", "'by=99999999999999999999'"},
               {"stream height=4", "'height=4'"},
               {"stream by=4 by=5", "given twice"},
               {"stream bt", "'bt'"},
               {"stream in-place=1", "'in-place=1'"},
               {"stream in-place bt=4 in-place", "given twice"},
               {"stream engine=steam", "engine=steam"},
               {"stream engine=", "'engine='"},
               {"stream faces=disk", "'faces=disk'"},
               {"stream faces=", "'faces='"},
               {"stream threads=3000000000", "'threads=3000000000'"},
               {"stream tuner=abcdefghijklmnop", "'tuner=abcdefghijklmnop'"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mx_plan p;
        mx_why why = {""};
        errno = 0;
        cr_expect(mx_plan_parse(bad[i].line, &why, &p) == -EINVAL, "'%s'", bad[i].line);
        cr_expect(strstr(why.text, bad[i].word) != NULL, "'%s': %s", bad[i].line, why.text);
        cr_expect(errno == 0);
    }
}

Test(tune, plan_from_file_and_alias) {
    char path[] = "/tmp/memext-plan-XXXXXX";
    int fd = mkstemp(path);
    const char text[] = "# made by memext tune\n\n  aio5y engine=iblock by=1025 bz=1280 bt=500\n";
    struct mx_plan p;
    mx_why why;
    cr_assert(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1));
    close(fd);
    int err = mx_plan_read(path, &why, &p);
    cr_expect(err == 0, "%s", why.text);
    cr_expect(strcmp(p.algorithm, "skewed-min") == 0 && p.by == 1025 && p.bz == 1280 && p.bt == 500 &&
              p.iy == 0);
    cr_expect(mx_plan_read("stream bt=4", &why, &p) == 0 && p.bt == 4);
    cr_expect(mx_plan_read("/nowhere/plan", &why, &p) == -EINVAL &&
              strstr(why.text, "/nowhere/plan") != NULL);
    cr_assert(truncate(path, 10) == 0);
    cr_expect(mx_plan_read(path, &why, &p) == -EINVAL && strstr(why.text, path) != NULL);
    unlink(path);
}
