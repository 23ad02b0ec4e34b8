/* Asks daemons what their programs wait for (doctor.h). */
#include <jansson.h>
#include <stdlib.h>
#include <time.h>
#include "tools/pwcctl/doctor/held.h"
#include "tools/request.h"

static const char *const names[DOCTOR_VIEWS] = {"queues", "ops", "jobs", "nodes", "clients"};

static json_t *ask(struct doctor_stalls *s, const char *socket, enum doctor_view view)
{
    char why[DOCTOR_WHY_MAX];
    json_t *document = NULL;
    int rc = request_document(socket, names[view], &document, why, sizeof(why));
    doctor_take_answer(s, view, socket, rc, document, why);
    /* A daemon that does not answer the first question is asked no other one. */
    for (unsigned v = view + 1; view == DOCTOR_QUEUES && rc < 0 && v < DOCTOR_VIEWS; v++)
        doctor_take_answer(s, v, socket, rc, NULL, why);
    return document;
}

static void ask_rest(struct doctor_answers *a, struct doctor_stalls *s, const char *socket)
{
    a->ops = ask(s, socket, DOCTOR_OPS);
    a->jobs = ask(s, socket, DOCTOR_JOBS);
    a->nodes = ask(s, socket, DOCTOR_NODES);
    a->clients = ask(s, socket, DOCTOR_CLIENTS);
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
        all[i].queues = ask(s, sockets[i], DOCTOR_QUEUES);
        suspect |= doctor_is_suspect(all[i].queues) || doctor_has_waiter(all[i].queues);
    }
    if (suspect)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    for (size_t i = 0; all != NULL && later != NULL && i < count; i++) {
        later[i] = suspect ? ask(s, sockets[i], DOCTOR_QUEUES) : NULL;
        if (all[i].queues != NULL)
            ask_rest(&all[i], s, sockets[i]);
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
