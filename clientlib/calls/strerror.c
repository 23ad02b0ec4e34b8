/*
 * The meanings of results and statuses. Owns constants. Thread: any.
 *
 * An error has one text, so the text names the meanings that the error has at different calls.
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
    {EADDRINUSE,
     "in use: this rank of the job is attached already, another process has published the name, or "
     "the index or the region has an offload"},
    {E2BIG, "an active message has 16 arguments at most, a vector 1024 pieces and half of a ring, "
            "and an offload of an older daemon 64 targets"},
    {EAGAIN,
     "no room in the submission ring, or for local events, replies or one more collective; or the "
     "remote is being bound, or a vector to the peer is not submitted as a whole: probe, then try "
     "again"},
    {EALREADY,
     "the handler has replied already, or the request can't be cancelled: its operations are "
     "submitted, or it is not under way"},
    {EBADMSG, "the team is broken: its members called differently; pwc_team_error_text says who"},
    {EBUSY,
     "a prepared message is to be committed or cancelled first; or the request, program, team, "
     "window, region or context is in use; of an atomic: others kept changing the word"},
    {ECANCELED, "another rank could not take part, which pwc_error_text names; of a request "
                "or a bind: it was cancelled"},
    {ECONNABORTED, "the link was lost for good, or the daemon was restarted: whether the operation "
                   "took place is unknown"},
    {ECONNREFUSED, "no daemon answers at the socket: is pwcd running?"},
    {EDEADLK, "a handler must not block, nor run handlers"},
    {EDQUOT, "over the quota of the client or its user"},
    {EEXIST, "the memory overlaps a region that is registered otherwise"},
    {EFAULT,
     "more than pwc_packed_max bytes, several fetched values, or a piece of a vector, in no "
     "region of this client: use pwc_alloc or pwc_register"},
    {EHOSTDOWN, "the peer, or its node, is gone"},
    {EHOSTUNREACH, "no such peer in this job, or an address of another job or of one that "
                   "has ended; of a Long reply: the requester's memory can't be reached from here"},
    {EINVAL, "an argument is out of range"},
    {EKEYREJECTED, "the key is unknown, withdrawn, of another job, or does not give this right"},
    {EMFILE, "this process, or its daemon, has no descriptor left: close some, or raise the limit"},
    {EMSGSIZE, "longer than a message, a submission, a collective or an exchange may be, or than "
               "the memory that is there for it"},
    {ENFILE, "the system has no descriptor left"},
    {ENOBUFS,
     "too many events kept by filters: probe for those first; of a call that asks the daemon: "
     "too many requests wait there, try again later"},
    {ENODATA,
     "nothing names the job, the rank or the number of ranks: start the program with pwcrun, "
     "srun or mpirun"},
    {ENOENT,
     "not found: no daemon's socket at that path (is pwcd running?), no such published name, "
     "no request under way, or no such context in the window"},
    {ENOEXEC, "no program of handlers that can be run: pwc_error_text says where and why"},
    {ENOMEM, "out of memory"},
    {ENOSPC, "no room for more of these in the daemon, the job or the window; of pwc_fd: the user "
             "may watch no more descriptors"},
    {ENOSYS, "no handler stands at that index, or the daemon is older than this call"},
    {ENOTSUP,
     "not possible with a region that is local only (without rights, or through a copy), in "
     "an open job, with a daemon older than 0.6 at the job's home, for so many members of a "
     "team, or towards the region of an offload"},
    {EOWNERDEAD, "this process is a child made by fork: attach anew"},
    {EPERM, "there is nothing to reply to: a reply itself, or a request that asked for none; of a "
            "program of handlers: the daemon takes none of this user"},
    {EPROTO, "the protocol was broken, and the daemon or the library ended the session; of a team: "
             "what its members share makes no sense, or their nodes differ in `collective`"},
    {EPROTONOSUPPORT,
     "library and daemon are of versions that do not work together; pwc_error_text says more"},
    {ERANGE, "outside the bounds of the region; of an offload also: over 1 MiB of state"},
    {EREMOTEIO, "a handler of the target's offload failed, or ended by a fault"},
    {ESHUTDOWN,
     "the daemon ended the session, or is gone; of an operation that an offload takes: the "
     "offload is disabled, or was destroyed"},
    {ESTALE, "the token is not that of the running handler; of an open job: its home has lost its "
             "state since the job began"},
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
