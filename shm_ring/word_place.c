/* Owns nothing: word_place for lengths other than eight aligned bytes (word.h). Thread: any. */
#include "shm_ring/word.h"

#include <string.h>

void word_place_other(void *to, const void *from, size_t length)
{
    uint32_t value = 0;

    if (!word_is_one_store((uintptr_t)to, length)) {
        memcpy(to, from, length);
        return;
    }
    memcpy(&value, from, length);
    switch (length) {
    case 4:
        __atomic_store_n((word_32 *)to, value, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((word_16 *)to, (uint16_t)value, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n((word_8 *)to, (uint8_t)value, __ATOMIC_RELEASE);
    }
}
