/* Publishing names and looking them up (pwc/open.h), by requests to the daemon. Owns nothing.
 * Thread: any. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "clientlib/attach/client.h"
#include "clientlib/attach/deadline.h"
#include "pwc/open.h"

static bool name_valid(const char *name)
{
    size_t length = 0;

    while (length <= PWC_NAME_MAX && name[length] > ' ' && name[length] <= '~')
        length++;
    return length > 0 && length <= PWC_NAME_MAX && name[length] == '\0';
}

/* Checks at the start of a call: 0, or the error with its text. */
static int begin(struct pwc_client *client, const char *name)
{
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    return name && name_valid(name)
               ? 0
               : daemon_link_refuse(&client->link, -EINVAL,
                                    "a published name has 1 to 63 printable characters without "
                                    "spaces");
}

int pwc_publish(pwc_client *client, const char *name, const void *data, size_t len)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Publish publish = PWC__PUBLISH__INIT;
    int rc = begin(client, name);
    char why[80];

    if (rc < 0)
        return rc;
    if (len > PWC_PUBLISHED_MAX || (len > 0 && !data)) {
        snprintf(why, sizeof(why), "%zu bytes under a name: give up to %d, and a pointer to them",
                 len, PWC_PUBLISHED_MAX);
        return daemon_link_refuse(&client->link, -EINVAL, why);
    }
    publish.name = (char *)(uintptr_t)name;
    publish.data.data = (uint8_t *)(uintptr_t)data;
    publish.data.len = len;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PUBLISH;
    request.publish = &publish;
    return daemon_call_again(&client->link, &request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL);
}

int pwc_unpublish(pwc_client *client, const char *name)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Publish publish = PWC__PUBLISH__INIT;
    int rc = begin(client, name);
    bool again = false;

    if (rc < 0)
        return rc;
    publish.name = (char *)(uintptr_t)name;
    publish.gone = true;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PUBLISH;
    request.publish = &publish;
    while ((rc = daemon_call(&client->link, &request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL)) ==
           -ECONNABORTED)
        again = true;
    return rc == -ENOENT && again ? 0 : rc; /* the daemon had done it before its restart */
}

/* Where accept_found copies the data. */
struct finding {
    void *data;
    size_t room, length;
};

static int accept_found(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct finding *f = context;

    f->length = reply->found->data.len;
    if (f->length > f->room)
        return -EMSGSIZE;
    if (f->length > 0)
        memcpy(f->data, reply->found->data.data, f->length);
    return 1;
}

/* Asks the daemon to end a lookup that waits. */
static void give_up(struct pwc_client *client, uint32_t lookup_id)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Lookup lookup = PWC__LOOKUP__INIT;

    lookup.give_up = lookup_id;
    request.body_case = PWC__CLIENT_REQUEST__BODY_LOOKUP;
    request.lookup = &lookup;
    (void)daemon_send(&client->link, &request);
}

int pwc_lookup(pwc_client *client, const char *name, void *data, size_t *len, int timeout_ms)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Lookup lookup = PWC__LOOKUP__INIT;
    struct finding finding = {.data = data, .room = len ? *len : 0};
    int64_t deadline = deadline_after_ms(timeout_ms != 0 ? timeout_ms : client->link.timeout_ms);
    int rc = begin(client, name);
    char why[160];

    if (rc < 0)
        return rc;
    if (!len || (*len > 0 && !data))
        return daemon_link_refuse(&client->link, -EINVAL, "no place for what is found");
    lookup.name = (char *)(uintptr_t)name;
    lookup.wait = timeout_ms != 0;
    request.body_case = PWC__CLIENT_REQUEST__BODY_LOOKUP;
    request.lookup = &lookup;
    do
        rc = daemon_call_until(&client->link, &request, PWC__CLIENT_REPLY__BODY_FOUND, accept_found,
                               &finding, deadline);
    while (rc == -ECONNABORTED);
    if (rc == 0)
        *len = finding.length;
    if (rc == -EMSGSIZE) {
        snprintf(why, sizeof(why), "name %s has %zu bytes, and there is room for %zu", name,
                 finding.length, finding.room);
        return daemon_link_refuse(&client->link, rc, why);
    }
    if (rc == -ETIMEDOUT && lookup.wait) {
        give_up(client, request.id);
        snprintf(why, sizeof(why), "nobody has published name %s within %d ms", name, timeout_ms);
        return daemon_link_refuse(&client->link, -ENOENT, why);
    }
    return rc;
}
