/*
 * Loaded into a redis-server or a client process with LD_PRELOAD: adds an offset to its wall clock,
 * read from a mapped file, so that the clock of a running process can be stepped from outside. The
 * monotonic clock is left alone. The clocks are read by system call: looking up the real function
 * would call malloc, and the server's allocator reads the time while it starts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_ms = 0;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("SHIFTED_CLOCK_FILE");
  if (!path) return;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) offset_ms = mapped;
}

static void shift(struct timespec *at) {
  if (!offset_ms) return;
  int64_t ms = *offset_ms;
  at->tv_sec += ms / 1000;
  at->tv_nsec += (ms % 1000) * 1000000;
  if (at->tv_nsec >= 1000000000) { at->tv_nsec -= 1000000000; at->tv_sec += 1; }
  if (at->tv_nsec < 0) { at->tv_nsec += 1000000000; at->tv_sec -= 1; }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  long failed = syscall(SYS_clock_gettime, clock, at);
  if (failed) return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) shift(at);
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
