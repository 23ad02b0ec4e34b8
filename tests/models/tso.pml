/*
 * Shared memory as an x86 processor shows it (total store order); spin itself knows only
 * sequentially consistent memory.
 *
 * Each process writes into a queue of its own, the store buffer, which drains into memory one store
 * after the other, at any time. A load sees the newest store to its word in the buffer of its own
 * process, otherwise memory. A full fence waits until its own buffer is empty; a locked instruction
 * drains it, then works on memory. membarrier(2) is a full fence of the caller; then it waits, for
 * one registered process after the other, until that process's buffer is empty.
 *
 * Not modelled: weaker machines. There a store with release and a load with acquire order what TSO
 * orders by itself (records before tail, payload before head), and all other loads and stores may
 * be reordered; the letters A, B, E and F stand for these orders, and tests/shm_ring runs them. The
 * compiler's order is taken as written: that is what atomic_signal_fence is for.
 *
 * A model defines before it includes this file: PROCESSES; REGISTERED, the number of those, from
 * the first on, that have registered for membarrier; WORDS; and DEPTH, the length of the longest
 * store buffer. Each process that uses this has its number in a local `me`.
 */
typedef buffer {
    chan stores = [DEPTH] of { byte, byte }; /* word, value; the oldest first */
    byte newest[WORDS];                      /* the value that this process itself loads, while ... */
    byte waiting[WORDS]                      /* ... so many stores to the word wait here */
}
buffer cpu[PROCESSES];
byte memory[WORDS];

inline store(word, value)
{
    atomic {
        cpu[me].stores ! word, value;
        cpu[me].newest[word] = value;
        cpu[me].waiting[word]++
    }
}

/* An expression: the newest store in the own buffer, otherwise memory. */
#define LOAD(word) (cpu[me].waiting[word] -> cpu[me].newest[word] : memory[word])

#define EMPTY(process) (len(cpu[process].stores) == 0)

inline fence()
{
    EMPTY(me)
}

/* A locked exchange with 0; `old` gets the word's old value. */
inline exchange_zero(word, old)
{
    atomic {
        EMPTY(me);
        old = memory[word];
        memory[word] = 0
    }
}

/* membarrier(2); `p` is a local byte of the caller. */
inline membarrier(p)
{
    EMPTY(me);
    p = 0;
    do
    :: p < REGISTERED -> EMPTY(p); p++
    :: else -> break
    od
}

/* Drains the buffer of one process. This process may stop at its end label: stores that are left in
 * the buffer do not let a model end too early, because there is always a next step then. */
proctype drain(byte cpu_no)
{
    byte word, value;

end_drained:
    do
    :: atomic {
           cpu[cpu_no].stores ? word, value;
           memory[word] = value;
           cpu[cpu_no].waiting[word]--;
           if
           :: cpu[cpu_no].waiting[word] == 0 -> cpu[cpu_no].newest[word] = 0
           :: else
           fi;
           word = 0;
           value = 0
       }
    od
}
