/*
 * Shared memory as an x86 processor shows it (total store order); spin alone knows no other than a
 * sequentially consistent one.
 *
 * Each process writes into a queue of its own, the store buffer, which drains into memory one store
 * after the other, at any time. A load sees the newest store of its own buffer, else memory. A full
 * fence waits until its own buffer is empty; a locked instruction drains it, then works on memory.
 * membarrier(2) is a full fence of the caller, then finds the buffer of each process that has
 * registered empty at some moment before it ends, one after the other.
 *
 * Not modelled: weaker machines. There a store with release and a load with acquire order what TSO
 * orders by itself (records before tail, payload before head), and each load and store may move
 * besides; the letters A, B, E and F stand for that, and tests/shm_ring runs them. The compiler's
 * order is taken as written: that is what atomic_signal_fence is for.
 *
 * Before this file: PROCESSES, of which the first REGISTERED have done so, WORDS, and DEPTH, the
 * longest store buffer. Each process that uses this has its number in a local `me`.
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

/* An expression. */
#define LOAD(word) (cpu[me].waiting[word] -> cpu[me].newest[word] : memory[word])

#define EMPTY(process) (len(cpu[process].stores) == 0)

inline fence()
{
    EMPTY(me)
}

/* A locked exchange with 0; `old` gets what stood there. */
inline exchange_zero(word, old)
{
    atomic {
        EMPTY(me);
        old = memory[word];
        memory[word] = 0
    }
}

/* `p` is a local byte of the caller. */
inline membarrier(p)
{
    EMPTY(me);
    p = 0;
    do
    :: p < REGISTERED -> EMPTY(p); p++
    :: else -> break
    od
}

/* Drains the buffer of one process. May end here: what is left in it does not keep a model from
 * ending, for there always is a next step then. */
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
