/*
 * The meanings of results and statuses. Owns constants. Thread: any.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include "pwc/pwc.h"

struct meaning {
    int error;
    const char *text;
};

static const struct meaning meanings[] = {
    {0, "success"},
    {EACCES, "the daemon does not serve this user, or its socket is for others"},
    {EADDRINUSE, "this rank of the job is attached already"},
    {E2BIG, "an active message has 16 arguments at most, a vector 1024 pieces and half of a ring"},
    {EAGAIN,
     "no room in the submission ring, or for local events or replies: probe, then try again"},
    {EALREADY, "the handler has replied already"},
    {EBADMSG, "the team is broken: its members called differently; pwc_team_error_text says who"},
    {EBUSY, "a prepared message is to be committed or cancelled first"},
    {ECONNABORTED, "the link was lost for good: whether the operation took place is unknown"},
    {ECONNREFUSED, "no daemon answers at the socket: is pwcd running?"},
    {EDEADLK, "a handler must not block, nor run handlers"},
    {EDQUOT, "over the quota of the client or its user"},
    {EEXIST, "the memory overlaps a region that is registered otherwise"},
    {EFAULT, "more than pwc_packed_max bytes, or several fetched values, in no region of this "
             "client: use pwc_alloc or pwc_register"},
    {EHOSTDOWN, "the peer, or its node, is gone"},
    {EHOSTUNREACH, "no such peer in this job"},
    {EINVAL, "an argument is out of range"},
    {EKEYREJECTED, "the key is unknown, withdrawn, of another job, or does not give this right"},
    {EMFILE, "this process has no descriptor left: close some, or raise its limit"},
    {EMSGSIZE, "longer than a message, a submission or an exchange may be"},
    {ENOBUFS,
     "too many events kept by filters: probe for those first; of a call that asks the daemon: "
     "too many requests wait there, try again later"},
    {ENODATA,
     "nothing names the job, the rank or the number of ranks: start the program with pwcrun, "
     "srun or mpirun"},
    {ENOENT, "no daemon's socket at that path: is pwcd running?"},
    {ENOEXEC, "no program of handlers that can be run: pwc_error_text says where and why"},
    {ENOMEM, "out of memory"},
    {ENOSPC, "the daemon has no room for more of these"},
    {ENOSYS, "no handler stands at that index"},
    {ENOTSUP, "the region is local only: without rights, or through a copy"},
    {EOWNERDEAD, "this process is a child made by fork: attach anew"},
    {EPERM, "there is nothing to reply to: a reply itself, or a request that asked for none"},
    {EPROTO, "the protocol was broken, and the daemon or the library ended the session"},
    {EPROTONOSUPPORT,
     "library and daemon are of versions that do not work together; pwc_error_text says more"},
    {ERANGE, "outside the bounds of the remote region"},
    {ESHUTDOWN, "the daemon ended the session, or is gone"},
    {ESTALE, "the token is not that of the running handler"},
    {ETIMEDOUT, "no answer in time"},
};

const char *pwc_strerror(int error)
{
    int number = error < 0 && error != INT_MIN ? -error : error;
    const char *text;

    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].error == number)
            return meanings[i].text;
    text = strerrordesc_np(number);
    return text ? text : "unknown error";
}
