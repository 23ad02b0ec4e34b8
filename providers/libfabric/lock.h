/*
 * A mutex that is left out where the application promises one thread a domain (FI_THREAD_DOMAIN).
 * The struct that holds a lock owns it.
 */
#ifndef PWC_PROVIDER_LOCK_H
#define PWC_PROVIDER_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex;
    bool used;
};

static inline void lock_init(struct lock *lock, bool used)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->used = used;
}

static inline void lock_destroy(struct lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static inline void lock_take(struct lock *lock)
{
    if (lock->used)
        pthread_mutex_lock(&lock->mutex);
}

static inline void lock_give(struct lock *lock)
{
    if (lock->used)
        pthread_mutex_unlock(&lock->mutex);
}

#endif
