/* Puts the process's calendar two hours ahead; the clocks that only measure stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    int result;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += 2 * 60 * 60;
    return result;
}
