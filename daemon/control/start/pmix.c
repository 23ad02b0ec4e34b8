/* Owns the calls to PMIx (pmix.h). Thread: main. */
#include "daemon/control/start/pmix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pmix_nodes_free(struct pmix_nodes *i)
{
    free(i->nodes);
    explicit_bzero(i, sizeof(*i));
}

#ifdef PWC_PMIX
#include <pmix.h>

/* The key that each task sets: a daemon to "port host secret", any other task to "spare". */
#define KEY      "pwcd.introduction"
#define TEXT_MAX (NODE_HOST_MAX + PMIX_SECRET_MAX + 16u)

bool pmix_offered(void)
{
    return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

static int failed(const char *what, pmix_status_t status, char *why, size_t why_size)
{
    snprintf(why, why_size,
             "PMIx, %s: %s: start pwcd --job with srun --mpi=none, or give --nodes and --node",
             what, PMIx_Error_string(status));
    return -EIO;
}

static int number(const pmix_proc_t *of, const char *key, uint32_t *out, char *why, size_t why_size)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(of, key, NULL, 0, &value);

    if (status != PMIX_SUCCESS)
        return failed(key, status, why, why_size);
    *out = value->type == PMIX_UINT16 ? value->data.uint16 : value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return 0;
}

/* Publishes our value, and waits until all tasks have published theirs. */
static int publish(const pmix_proc_t *all, char *text, char *why, size_t why_size)
{
    pmix_value_t value = {.type = PMIX_STRING};
    bool collect = true;
    pmix_info_t info;
    pmix_status_t status;

    value.data.string = text;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    status = PMIx_Put(PMIX_GLOBAL, KEY, &value);
    if (status == PMIX_SUCCESS)
        status = PMIx_Commit();
    if (status == PMIX_SUCCESS)
        status = PMIx_Fence(all, 1, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return status == PMIX_SUCCESS ? 0 : failed("fence", status, why, why_size);
}

/* Reads one task's value. A spare task adds no node. */
static int take(struct pmix_nodes *out, const char *text, bool own, bool first)
{
    struct node_address *to = &out->nodes[out->count];
    char secret[PMIX_SECRET_MAX];

    if (strlen(text) >= TEXT_MAX || sscanf(text, "%5s %255s %63s", to->port, to->host, secret) != 3)
        return strcmp(text, "spare") == 0 ? 0 : -EPROTO;
    if (first && strcmp(secret, "-") != 0)
        memcpy(out->secret, secret, sizeof(secret));
    if (own)
        out->own = out->count;
    out->count++;
    return 0;
}

static int collect(struct pmix_nodes *out, const pmix_proc_t *self, uint32_t size, char *why,
                   size_t why_size)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        pmix_value_t *value = NULL;
        pmix_proc_t proc;
        pmix_status_t status;
        int rc;

        PMIX_LOAD_PROCID(&proc, self->nspace, rank);
        status = PMIx_Get(&proc, KEY, NULL, 0, &value);
        if (status != PMIX_SUCCESS)
            return failed("what another daemon has said", status, why, why_size);
        rc = value->type == PMIX_STRING
                 ? take(out, value->data.string, rank == self->rank, rank == 0)
                 : -EPROTO;
        PMIX_VALUE_RELEASE(value);
        if (rc < 0) {
            snprintf(why, why_size, "PMIx: task %u has said what no daemon says", rank);
            return rc;
        }
    }
    return 0;
}

static int exchange(struct pmix_nodes *out, const pmix_proc_t *self,
                    const struct node_address *ours, const char *secret, char *why, size_t why_size)
{
    char text[TEXT_MAX] = "spare";
    uint32_t size, local;
    pmix_proc_t all;
    int rc;

    PMIX_LOAD_PROCID(&all, self->nspace, PMIX_RANK_WILDCARD);
    rc = number(&all, PMIX_JOB_SIZE, &size, why, why_size);
    if (rc == 0)
        rc = number(self, PMIX_LOCAL_RANK, &local, why, why_size);
    if (rc < 0)
        return rc;
    out->spare = local != 0;
    out->nodes = calloc(size, sizeof(*out->nodes));
    if (!out->nodes)
        return -ENOMEM;
    if (!out->spare)
        snprintf(text, sizeof(text), "%s %s %s", ours->port, ours->host,
                 self->rank == 0 && *secret ? secret : "-");
    rc = publish(&all, text, why, why_size);
    if (rc == 0)
        rc = collect(out, self, size, why, why_size);
    explicit_bzero(text, sizeof(text));
    return rc;
}

int pmix_exchange(struct pmix_nodes *out, const struct node_address *ours, const char *secret,
                  char *why, size_t why_size)
{
    pmix_proc_t self;
    pmix_status_t status = PMIx_Init(&self, NULL, 0);
    int rc;

    *out = (struct pmix_nodes){0};
    if (status != PMIX_SUCCESS) {
        (void)failed("init", status, why, why_size);
        return -ENOTCONN;
    }
    rc = exchange(out, &self, ours, secret, why, why_size);
    (void)PMIx_Finalize(NULL, 0);
    if (rc < 0)
        pmix_nodes_free(out);
    return rc;
}

#else

bool pmix_offered(void)
{
    return false;
}

int pmix_exchange(struct pmix_nodes *out, const struct node_address *ours, const char *secret,
                  char *why, size_t why_size)
{
    *out = (struct pmix_nodes){0};
    snprintf(why, why_size, "this pwcd was built without PMIx");
    return -ENOTSUP;
}
#endif
