/* SPDX-License-Identifier: BSD-3-Clause */
/* criterion.h - a stand-in for Criterion under the thread sanitizer, whose address space Criterion's test
 * processes do not fit into ("Could not initialize inheritable arena"). The part of Criterion that the tests
 * here use, same meaning: every test is a process of its own, one after another, and cr_assert ends the test.
 */
#ifndef MX_TSAN_CRITERION_H
#define MX_TSAN_CRITERION_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct cr_options {
    void (*init)(void), (*fini)(void);
    double timeout; /* not kept */
    int nothing;
};

struct cr_test {
    const char *suite, *name;
    void (*run)(void);
    struct cr_options options;
    struct cr_test *next;
};

struct cr_suite {
    const char *name;
    struct cr_options options;
    struct cr_suite *next;
};

/* Reports of the sanitizer go where the checks go: a test may keep standard error for itself. */
const char *__tsan_default_options(void);
__attribute__((weak)) const char *__tsan_default_options(void) { return "log_path=stdout"; }

/* One of each in a program of several files. */
#define CR_SHARED __attribute__((weak))
CR_SHARED struct cr_test *cr_tests;
CR_SHARED struct cr_suite *cr_suites;
CR_SHARED jmp_buf cr_end;
CR_SHARED int cr_failures, cr_skipped;
CR_SHARED const struct cr_test *cr_this; /* the one that this process runs */

#define Test(suite_name, test_name, ...)                                                                     \
    static void test_##suite_name##_##test_name(void);                                                       \
    __attribute__((constructor)) static void add_##suite_name##_##test_name(void) {                          \
        static struct cr_test test = {                                                                       \
            #suite_name, #test_name, test_##suite_name##_##test_name, {.nothing = 0, __VA_ARGS__}, NULL};    \
        test.next = cr_tests;                                                                                \
        cr_tests = &test;                                                                                    \
    }                                                                                                        \
    static void test_##suite_name##_##test_name(void)

#define TestSuite(suite_name, ...)                                                                           \
    __attribute__((constructor)) static void add_suite_##suite_name(void) {                                  \
        static struct cr_suite suite = {#suite_name, {.nothing = 0, __VA_ARGS__}, NULL};                     \
        suite.next = cr_suites;                                                                              \
        cr_suites = &suite;                                                                                  \
    }                                                                                                        \
    struct cr_suite /* takes the semicolon */

/* The messages are optional printf arguments: an empty format before them takes the place of the first. */
#define CR_CHECK(fatal, good, text, ...)                                                                     \
    do {                                                                                                     \
        if (!(good)) {                                                                                       \
            cr_failures++;                                                                                   \
            printf("%s:%d: %s: ", __FILE__, __LINE__, text);                                                 \
            printf("" __VA_ARGS__);                                                                          \
            printf("\n");                                                                                    \
            if (fatal) longjmp(cr_end, 1);                                                                   \
        }                                                                                                    \
    } while (0)

#define cr_assert(c, ...) CR_CHECK(1, c, #c, __VA_ARGS__)
#define cr_expect(c, ...) CR_CHECK(0, c, #c, __VA_ARGS__)
#define cr_assert_not(c, ...) CR_CHECK(1, !(c), "not " #c, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) CR_CHECK(1, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_eq(a, b, ...) CR_CHECK(0, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) CR_CHECK(1, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) CR_CHECK(0, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) CR_CHECK(1, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) CR_CHECK(0, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) CR_CHECK(1, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) CR_CHECK(0, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) CR_CHECK(1, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) CR_CHECK(0, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) CR_CHECK(1, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) CR_CHECK(0, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_null(p, ...) CR_CHECK(1, (p) == NULL, #p " is NULL", __VA_ARGS__)
#define cr_expect_null(p, ...) CR_CHECK(0, (p) == NULL, #p " is NULL", __VA_ARGS__)
#define cr_assert_not_null(p, ...) CR_CHECK(1, (p) != NULL, #p " is not NULL", __VA_ARGS__)
#define cr_expect_not_null(p, ...) CR_CHECK(0, (p) != NULL, #p " is not NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) CR_CHECK(1, strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_empty(a, ...) CR_CHECK(1, *(a) == '\0', #a " is empty", __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) CR_CHECK(0, strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...)                                                                     \
    CR_CHECK(0, (a) - (b) <= (e) && (b) - (a) <= (e), #a " is near " #b, __VA_ARGS__)
#define cr_log_warn(...) (printf(__VA_ARGS__), printf("\n"))
#define cr_log_info(...) (printf(__VA_ARGS__), printf("\n"))
#define cr_skip_test(...)                                                                                    \
    do {                                                                                                     \
        printf("[SKIP] %s::%s: ", cr_this->suite, cr_this->name);                                            \
        printf(__VA_ARGS__);                                                                                 \
        printf("\n");                                                                                        \
        cr_skipped = 1;                                                                                      \
        longjmp(cr_end, 1);                                                                                  \
    } while (0)

CR_SHARED int main(void);

static inline const struct cr_options *cr_options_of(const struct cr_test *test) {
    static const struct cr_options none;
    for (const struct cr_suite *s = cr_suites; s != NULL; s = s->next)
        if (strcmp(s->name, test->suite) == 0) return &s->options;
    return &none;
}

/* The test's own process: 0 = passed, 1 = failed, 77 = skipped; the sanitizer's own exit status for a race.
 */
static inline int cr_run(const struct cr_test *test) {
    const struct cr_options *suite = cr_options_of(test);
    void (*init)(void) = test->options.init ? test->options.init : suite->init;
    void (*fini)(void) = test->options.fini ? test->options.fini : suite->fini;
    if (setjmp(cr_end) == 0) {
        if (init) init();
        test->run();
    }
    if (fini) fini();
    fflush(stdout);
    return cr_failures > 0 ? 1 : cr_skipped ? 77 : 0;
}

int main(void) {
    int tested = 0, failed = 0, skipped = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct cr_test *test = cr_tests; test != NULL; test = test->next) {
        struct timespec begin, end;
        int status = 0;
        cr_this = test;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        pid_t child = fork();
        if (child == 0) exit(cr_run(test));
        waitpid(child, &status, 0);
        bool skip = WIFEXITED(status) && WEXITSTATUS(status) == 77;
        tested++;
        skipped += skip;
        failed += status != 0 && !skip;
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (skip) continue; /* it has said so, and why */
        printf("[%s] %s::%s: (%.2fs)\n", status ? "FAIL" : "PASS", test->suite, test->name,
               (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    }
    printf("[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: 0\n", tested,
           tested - failed - skipped, failed);
    return failed > 0;
}

#endif
