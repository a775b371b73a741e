/* Adds two milliseconds to each fdatasync: the flush of network storage on a fast disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int fdatasync(int file)
{
    static int (*real)(int);
    const struct timespec two_milliseconds = {0, 2 * 1000 * 1000};
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    nanosleep(&two_milliseconds, 0);
    return real(file);
}
