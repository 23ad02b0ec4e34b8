/* Asks daemons what their programs wait for (doctor.h). */
#include <jansson.h>
#include <stdlib.h>
#include <time.h>
#include "tools/pwcctl/doctor/held.h"
#include "tools/request.h"

#define WHY_MAX 600

static json_t *ask(const char *socket, const char *what)
{
    char why[WHY_MAX];
    json_t *document;
    return request_document(socket, what, &document, why, sizeof(why)) == 0 ? document : NULL;
}

static void ask_rest(struct doctor_answers *a, const char *socket)
{
    a->ops = ask(socket, "ops");
    a->jobs = ask(socket, "jobs");
    a->nodes = ask(socket, "nodes");
    a->clients = ask(socket, "clients");
}

static void free_answers(struct doctor_answers *a)
{
    json_decref(a->queues);
    json_decref(a->ops);
    json_decref(a->jobs);
    json_decref(a->nodes);
    json_decref(a->clients);
}

void doctor_look_at_stalls(struct doctor_stalls *s, const char *const *sockets, size_t count)
{
    struct doctor_answers *all = calloc(count, sizeof(*all));
    json_t **later = calloc(count, sizeof(json_t *));
    bool suspect = false;
    for (size_t i = 0; all != NULL && later != NULL && i < count; i++) {
        all[i].queues = ask(sockets[i], "queues");
        suspect |= doctor_is_suspect(all[i].queues) || doctor_has_waiter(all[i].queues);
    }
    if (suspect)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    for (size_t i = 0; all != NULL && later != NULL && i < count; i++) {
        later[i] = suspect ? ask(sockets[i], "queues") : NULL;
        if (all[i].queues != NULL) /* else the check "daemon" says why the first one gave none */
            ask_rest(&all[i], sockets[i]);
    }
    if (all != NULL && later != NULL) {
        doctor_take_stalls(s, all, later, count);
        doctor_take_still(&s->still, all, later, count);
    }
    for (size_t i = 0; all != NULL && later != NULL && i < count; i++) {
        free_answers(&all[i]);
        json_decref(later[i]);
    }
    free(all);
    free(later);
}
