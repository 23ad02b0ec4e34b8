/* Rank 0 puts a greeting into rank 1's memory. The put's event says that the greeting is there. */
#include <pwc/pwc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) check(#call, call)
static void check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
}

int main(void)
{
    struct pwc_event event = {.status = 0};
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *ranks[2];

    CHECK(pwc_init(NULL, &client)); /* socket, job, rank and size come from the environment */
    if (pwc_size(client) != 2)
        return 2; /* this program is for two ranks */
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_alloc(client, 4096, PWC_REMOTE_WRITE, &region));
    CHECK(pwc_bind_all(ctx, region, ranks)); /* the ranks' regions are one memory */
    if (pwc_rank(client) == 0) {
        CHECK(pwc_put_wait(ranks[1], 0, "hello", 6, pwc_cid_u64(42), 0)); /* placed at rank 1 */
    } else {
        CHECK(pwc_wait(ctx, 0, PWC_REMOTE, &event, -1)); /* remote event: the data is here */
        printf("event %d, %d bytes: %s\n", (int)event.id, (int)event.length,
               (char *)pwc_region_addr(region));
    }
    CHECK(pwc_finalize(client));
    return event.status != 0;
}
