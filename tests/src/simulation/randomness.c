/* Randomness that can be repeated: a thread whose name is "sim" and twelve hexadecimal digits gets what a generator with that
 * seed makes, all others what the kernel has. Rust's standard library and the newer versions of the crate `getrandom` ask libc's
 * function, older versions make the system call by `syscall`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>

static __thread int asked, is_seeded;
static __thread uint64_t state;
static long (*kernel)(long, ...);

__attribute__((constructor)) static void find_kernel(void) { kernel = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"); }

static uint64_t next(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags) {
  if (!asked) {
    char name[16] = "";
    asked = 1;
    if (prctl(PR_GET_NAME, name) == 0 && strncmp(name, "sim", 3) == 0 && strlen(name) == 15) {
      state = strtoull(name + 3, NULL, 16);
      is_seeded = 1;
    }
  }
  if (!kernel) find_kernel();
  if (!is_seeded) return kernel(SYS_getrandom, buffer, length, flags);
  for (size_t done = 0; done < length;) {
    uint64_t word = next();
    size_t part = length - done < sizeof word ? length - done : sizeof word;
    memcpy((char *)buffer + done, &word, part);
    done += part;
  }
  return (ssize_t)length;
}

long syscall(long number, ...) {
  long values[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) values[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_getrandom) return getrandom((void *)values[0], (size_t)values[1], (unsigned int)values[2]);
  if (!kernel) find_kernel();
  return kernel(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
