/*
 * A limit of processes that is reached on command, for one program, also where that has all privileges: loaded with LD_PRELOAD,
 * starting a process fails with EAGAIN while the file MAGNUM_TEST_NO_PROCESSES_FLAG exists. Each refusal adds a byte to that
 * name with ".refused" behind it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int is_refused(void)
{
    const char *flag = getenv("MAGNUM_TEST_NO_PROCESSES_FLAG");
    char path[4096];
    int file;

    if (!flag || access(flag, F_OK) != 0)
        return 0;
    snprintf(path, sizeof path, "%s.refused", flag);
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0) {
        if (write(file, "x", 1) != 1)
            perror(path);
        close(file);
    }
    return 1;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

pid_t fork(void)
{
    NEXT(fork);
    if (is_refused()) { errno = EAGAIN; return -1; }
    return next();
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                char *const argv[], char *const envp[])
{
    NEXT(posix_spawn);
    return is_refused() ? EAGAIN : next(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const envp[])
{
    NEXT(posix_spawnp);
    return is_refused() ? EAGAIN : next(pid, file, actions, attributes, argv, envp);
}
