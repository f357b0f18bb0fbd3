/*
 * The wall clock of one host, which steps on command: loaded with LD_PRELOAD. The file MAGNUM_TEST_CLOCK holds how far it is off,
 * as a 64 bit number of milliseconds. It is mapped, so a step is seen at once by every process, forked ones included. The
 * kernel's own clock stays, so what waits until a moment on the wall clock is given that moment on the kernel's. Monotonic clocks
 * go on as they are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t right = 0;
static const volatile int64_t *offset_ms = &right;

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);

/* The versions that programs of today are linked with; one library has older ones beside them. */
static void *newest(const char *name, const char *version)
{
    void *found = dlvsym(RTLD_NEXT, name, version);
    return found ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *path = getenv("MAGNUM_TEST_CLOCK");
    int file;

    if (!real_clock_gettime)
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_cond_timedwait = newest("pthread_cond_timedwait", "GLIBC_2.3.2");
    real_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
    file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof *offset_ms, PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            offset_ms = mapped;
        close(file);
    }
    if (path && offset_ms == &right) {
        perror(path);
        abort();
    }
}

static void shift(struct timespec *time, int64_t milliseconds)
{
    int64_t nanoseconds = time->tv_nsec + milliseconds % 1000 * 1000000;

    time->tv_sec += milliseconds / 1000;
    if (nanoseconds < 0) {
        nanoseconds += 1000000000;
        time->tv_sec--;
    } else if (nanoseconds >= 1000000000) {
        nanoseconds -= 1000000000;
        time->tv_sec++;
    }
    time->tv_nsec = nanoseconds;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result;

    /* Other libraries may ask before this one is prepared. */
    if (!real_clock_gettime)
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    result = real_clock_gettime(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(time, *offset_ms);
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

/* A moment of this century is one on the wall clock; no monotonic clock has come so far. */
static const struct timespec *kernels(const struct timespec *until, struct timespec *moved)
{
    if (!until || until->tv_sec < 1000000000)
        return until;
    *moved = *until;
    shift(moved, -*offset_ms);
    return moved;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec moved;
    return real_cond_timedwait(condition, mutex, kernels(until, &moved));
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    struct timespec moved;
    return real_sem_timedwait(semaphore, kernels(until, &moved));
}
