/*
 * Flushes of a bad disk, for LD_PRELOAD: FLUSH=none answers without having written anything, FLUSH=50 takes 50 ms longer.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long flush(long call, int descriptor) {
  const char *how = getenv("FLUSH");
  if (how && !strcmp(how, "none")) return 0;
  if (how) {
    long ms = atol(how);
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
  }
  return syscall(call, descriptor);
}

int fdatasync(int descriptor) { return (int)flush(SYS_fdatasync, descriptor); }
int fsync(int descriptor) { return (int)flush(SYS_fsync, descriptor); }
