/* A copy of what a process knows at one moment, which another process makes of it while this one goes on. */

#ifndef STREAM_PEGASOS_ASIDE_H
#define STREAM_PEGASOS_ASIDE_H

#if defined(__linux__)
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0 in the other process, its number in this one, -1 where there can be none. */
static long sp_fork(void) { return (long)fork(); }

/* Leave the other process, without a word to what this one has open. */
static void sp_leave(void) { _exit(0); }

static void sp_wait(long process) {
    while (waitpid((pid_t)process, NULL, 0) < 0 && errno == EINTR) {}
}
#else
static long sp_fork(void) { return -1; }
static void sp_leave(void) {}
static void sp_wait(long process) { (void)process; }
#endif

#endif
