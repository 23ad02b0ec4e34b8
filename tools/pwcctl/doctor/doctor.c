/* Prints what the checks find (doctor.h). */
#include "tools/pwcctl/doctor/doctor.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const level_names[DOCTOR_LEVELS] = {"ok", "warn", "wrong", "unknown"};

static void print(const char *name, const struct doctor_finding *f)
{
    printf("%-5s  %-13s  %s\n", f->level == DOCTOR_UNKNOWN ? "-" : level_names[f->level], name,
           f->found);
    if (*f->mend != '\0')
        printf("%-5s  %-13s  to mend: %s\n", "", "", f->mend);
}

static json_t *row_of(const char *name, const struct doctor_finding *f)
{
    return json_pack("{s:s, s:s, s:s, s:s?}", "check", name, "level", level_names[f->level],
                     "found", f->found, "mend", *f->mend != '\0' ? f->mend : NULL);
}

static int print_document(json_t *rows, const unsigned counts[DOCTOR_LEVELS])
{
    json_t *document = json_pack("{s:s, s:O, s:i, s:i}", "what", "doctor", "checks", rows, "wrong",
                                 (int)counts[DOCTOR_WRONG], "warnings", (int)counts[DOCTOR_WARN]);
    char *text = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
    json_decref(document);
    if (text == NULL)
        return -ENOMEM;
    puts(text);
    free(text);
    return 0;
}

int doctor_run(const char *const *sockets, size_t count, bool json)
{
    struct doctor_facts *facts = calloc(1, sizeof(*facts));
    json_t *rows = json_array();
    unsigned counts[DOCTOR_LEVELS] = {0};
    int rc = facts != NULL && rows != NULL ? 0 : -ENOMEM;
    if (rc == 0) {
        doctor_look_at_daemon(facts, sockets[0]);
        doctor_look_at_stalls(&facts->stalls, sockets, count);
        doctor_look_at_machine(facts);
    }
    for (const struct doctor_check *check = doctor_checks(); rc == 0 && check->name; check++) {
        struct doctor_finding f = check->judge(facts);
        counts[f.level]++;
        if (json)
            rc = json_array_append_new(rows, row_of(check->name, &f)) == 0 ? 0 : -ENOMEM;
        else
            print(check->name, &f);
    }
    if (rc == 0 && json)
        rc = print_document(rows, counts);
    else if (rc == 0)
        printf("%u wrong, %u to look at\n", counts[DOCTOR_WRONG], counts[DOCTOR_WARN]);
    json_decref(rows);
    free(facts);
    if (rc < 0)
        fprintf(stderr, "pwcctl: doctor: no memory\n");
    return rc < 0 ? rc : counts[DOCTOR_WRONG] > 0;
}
