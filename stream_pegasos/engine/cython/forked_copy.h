/* A copy of what a process knows at one moment, which another process makes of it while this one goes on. */

#ifndef STREAM_PEGASOS_ASIDE_H
#define STREAM_PEGASOS_ASIDE_H

#if defined(__linux__)
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0 in the other process, its number in this one, -1 where there can be none. The other one hears no signal that is meant for
   this one, and holds none of its files, locks and connections open. */
static long sp_fork(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const long process = (long)fork();
    if (process) pthread_sigmask(SIG_SETMASK, &before, NULL);
#if defined(SYS_close_range)
    else if (syscall(SYS_close_range, 0u, ~0u, 0u) == 0) return 0;
#endif
    if (process == 0)
        for (int file = (int)sysconf(_SC_OPEN_MAX); file-- > 0;) close(file);
    return process;
}

/* Leave the other process, without a word to what this one has open. */
static void sp_leave(void) { _exit(0); }

/* End the other process, whose copy nobody wants. */
static void sp_end(long process) { kill((pid_t)process, SIGKILL); }

static void sp_wait(long process) {
    while (waitpid((pid_t)process, NULL, 0) < 0 && errno == EINTR) {}
}
#else
static long sp_fork(void) { return -1; }
static void sp_leave(void) {}
static void sp_end(long process) { (void)process; }
static void sp_wait(long process) { (void)process; }
#endif

#endif
