/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/streams.h"

#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Descriptors are given from 0 on, so each takes the place of the one that is missing. */
void mx_streams_open(void) {
    static const int mode = O_RDONLY; /* so that writing fails */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode) < 0) _exit(MX_EXIT_REFUSED);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* beyond `ulimit -f` a write fails with EFBIG, and a sentence says so */
    /* What is printed is written by a flush that can say why it failed; stdio does not keep that of a write
     * in between. */
    static char buffer[1 << 16];
    if (!isatty(STDOUT_FILENO)) setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

static int flush_error; /* of the first that failed; stdout keeps only that one did */
static bool asked_lost;

void mx_streams_flush(void) {
    if (fflush(stdout) == EOF && flush_error == 0) flush_error = errno;
}

void mx_streams_begin_asked(void) { clearerr(stderr); }

void mx_streams_end_asked(void) { asked_lost |= ferror(stderr) != 0; }

int mx_streams_end(const char *program, int status) {
    mx_streams_flush();
    const bool lost = ferror(stdout) != 0;
    if (fclose(stdout) == EOF && flush_error == 0) flush_error = errno;
    if (!lost && !asked_lost && flush_error == 0) return status;
    if ((lost || flush_error != 0) && status != MX_EXIT_IO &&
        flush_error != EPIPE) /* nothing was said of it; a reader that left knows */
        fprintf(stderr, "%s: the standard output cannot be written: %s\n", program,
                flush_error != 0 ? strerror(flush_error) : "a part of it is lost");
    /* Other statuses say what is worse. One that was refused for the sake of its output has no other. */
    return status == MX_EXIT_OK || status == MX_EXIT_REFUSED ? MX_EXIT_IO : status;
}
