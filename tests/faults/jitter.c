/* Makes threads take turns where they seldom do: about one lock in LABCTL_JITTER (40 unless set) waits up to 2 ms
   before it is taken, or after it is let go of. What crashes once in a thousand runs then crashes within seconds.

   gcc -O1 -shared -fPIC tests/faults/jitter.c -o build/jitter.so -ldl
   LD_PRELOAD=$PWD/build/jitter.so .venv/bin/python -m pytest -p no:xdist tests/unit/drivers/realsense */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static __thread uint32_t state; /* of this thread's own numbers (a linear congruential generator) */

static void jitter(void)
{
    static int one_in;
    if (!one_in) {
        const char *asked = getenv("LABCTL_JITTER");
        one_in = asked && atoi(asked) > 0 ? atoi(asked) : 40;
    }
    if (!state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = (uint32_t)now.tv_nsec ^ (uint32_t)(uintptr_t)&state ^ 1u;
    }
    state = state * 1664525u + 1013904223u;
    if ((state >> 8) % (uint32_t)one_in == 0)
        usleep((state >> 16) % 20 * 100);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    if (!real)
        real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    jitter();
    return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    if (!real)
        real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int result = real(mutex);
    jitter();
    return result;
}
