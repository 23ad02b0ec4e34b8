/*
 * Fuzzes how a program finds its rank in the environment. Each line of an input is the value of one
 * variable, in the order of `names`; an empty line leaves the variable unset.
 */
#include <stdlib.h>
#include <string.h>
#include "clientlib/attach/environment.h"

#define VALUE_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "PWC_SOCKET",     "PWC_JOB",        "PWC_RANK",      "PWC_SIZE",
    "PMIX_RANK",      "PMIX_NAMESPACE", "SLURM_PROCID",  "SLURM_STEP_NUM_TASKS",
    "SLURM_NTASKS",   "SLURM_JOB_ID",   "SLURM_STEP_ID", "OMPI_COMM_WORLD_SIZE",
    "XDG_RUNTIME_DIR"};

/* Sets the variable to the next line, and returns the line's length with its end. */
static size_t set(const char *name, const uint8_t *data, size_t size)
{
    char value[VALUE_MAX];
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end ? (size_t)(end - data) : size;
    size_t kept = length < sizeof(value) ? length : sizeof(value) - 1;

    memcpy(value, data, kept);
    value[kept] = '\0';
    if (value[0])
        setenv(name, value, 1);
    else
        unsetenv(name);
    return end ? length + 1 : length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct pwc_attr attr = {0};
    struct environment out;
    char why[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t used = size > 0 ? set(names[i], data, size) : 0;

        if (size == 0)
            unsetenv(names[i]);
        data += used;
        size -= used;
    }
    if (environment_resolve(&attr, &out, why, sizeof(why)) == 0 &&
        (out.rank >= out.size || strlen(out.job) == 0 || strlen(out.socket) == 0))
        abort();
    return 0;
}
