/* Rank 0 puts a greeting into rank 1's memory; the event tells rank 1 that it is there. */
#include <pwc/pwc.h>
#include <stdio.h>

int main(void)
{
    char why[256] = "";
    struct pwc_attr attr = {.error = why, .error_size = sizeof(why)}; /* all else: environment */
    struct pwc_key mine, keys[2];
    struct pwc_event event;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *other;
    int rc = pwc_init(&attr, &client);
    if (rc < 0 || pwc_size(client) != 2 || (rc = pwc_ctx_create(client, NULL, &ctx)) < 0 ||
        (rc = pwc_alloc(client, 4096, 0, &region)) < 0)
        return fprintf(stderr, "2 ranks and a daemon: %s\n", *why ? why : pwc_strerror(rc)), 1;
    pwc_region_key(region, &mine);
    pwc_exchange(ctx, &mine, sizeof(mine), keys);
    if (pwc_rank(client) == 0) {
        pwc_bind(ctx, 1, &keys[1], &other);
        pwc_put(ctx, other, 0, "hello", 6, pwc_cid_u64(1), pwc_cid_u64(42), 0);
        rc = pwc_wait(ctx, 1, PWC_LOCAL, &event, 10000); /* placed at rank 1 */
    } else if ((rc = pwc_wait(ctx, 0, PWC_REMOTE, &event, 10000)) == 1) {
        printf("event %d, %d bytes: %s\n", (int)event.id, (int)event.bytes,
               (char *)pwc_region_addr(region));
    }
    return pwc_finalize(client) < 0 || rc != 1 || event.status != 0;
}
