/* Owns nothing: calls the kernel without the C library (raw.h). Thread: any. */
#include "clientlib/memory/raw.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <errno.h>
#include <unistd.h>
#endif

intptr_t raw_call(intptr_t number, const intptr_t arguments[5])
{
#if defined(__x86_64__)
    register intptr_t fourth __asm__("r10") = arguments[3];
    register intptr_t fifth __asm__("r8") = arguments[4];
    intptr_t result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]),
                       "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register intptr_t first __asm__("x0") = arguments[0];
    register intptr_t second __asm__("x1") = arguments[1];
    register intptr_t third __asm__("x2") = arguments[2];
    register intptr_t fourth __asm__("x3") = arguments[3];
    register intptr_t fifth __asm__("x4") = arguments[4];
    register intptr_t call __asm__("x8") = number;

    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
                     : "memory");
    return first;
#else
    /* errno is written only after a failure, and then the memory is not moved. */
    long result =
        syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);

    return result < 0 ? -errno : result;
#endif
}
