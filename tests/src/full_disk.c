/*
 * A disk that is full on command, for one program, without privileges: loaded with LD_PRELOAD, writes to files
 * whose name contains MAGNUM_TEST_FULL_NAME fail with ENOSPC while the file MAGNUM_TEST_FULL_FLAG exists.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_full(int fd)
{
    const char *flag = getenv("MAGNUM_TEST_FULL_FLAG"), *name = getenv("MAGNUM_TEST_FULL_NAME");
    char link[64], path[4096];
    ssize_t length;

    if (!flag || !name || access(flag, F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strstr(path, name) != NULL;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define FULL(fd) \
    if (is_full(fd)) { errno = ENOSPC; return -1; }

ssize_t write(int fd, const void *data, size_t size)
{
    NEXT(write);
    FULL(fd)
    return next(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    NEXT(pwrite);
    FULL(fd)
    return next(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    NEXT(pwrite64);
    FULL(fd)
    return next(fd, data, size, at);
}
