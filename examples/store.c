/*
 * An open job: a server publishes its memory under a name, and clients that come and go put lines
 * into it. Nobody says how many there will be, and no launcher starts them:
 *
 *     ./store serve 2 &              serves until two lines have come
 *     ./store put "the first"        each waits for the server, puts its line, and leaves
 *     ./store put "the second"
 */
#include <pwc/open.h>
#include <pwc/pwc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) check(#call, call)

enum { LINE = 80, LINES = 64, WAIT_MS = 10000 };

/* The entry that the server publishes: where it is, and the right to its memory. */
struct card {
    struct pwc_address address;
    struct pwc_key key;
};

static void check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
}

/* Prints each line that arrives. The event's id says at which place the line is. */
static void serve(pwc_client *client, pwc_ctx *ctx, int lines)
{
    struct pwc_event event;
    struct card card;
    pwc_region *region;

    CHECK(pwc_alloc(client, LINES * LINE, PWC_REMOTE_WRITE, &region));
    CHECK(pwc_region_key(region, &card.key));
    CHECK(pwc_address(ctx, &card.address));
    CHECK(pwc_publish(client, "store", &card, sizeof(card)));
    for (int i = 0; i < lines; i++) {
        const char *line;

        CHECK(pwc_wait(ctx, PWC_ANY, PWC_REMOTE, &event, -1));
        line = (char *)pwc_region_addr(region) + event.id * LINE;
        printf("rank %u: %.*s\n", pwc_peer_rank(event.peer), LINE, line);
    }
}

/* Finds the server, and puts a line at the place that belongs to this client's rank. */
static void put(pwc_client *client, pwc_ctx *ctx, const char *text)
{
    uint64_t place = pwc_rank(client) % LINES;
    size_t length = sizeof(struct card);
    char line[LINE] = "";
    struct card card;
    pwc_remote *store;
    pwc_peer peer;

    snprintf(line, sizeof(line), "%s", text);
    CHECK(pwc_lookup(client, "store", &card, &length, WAIT_MS));
    CHECK(pwc_address_peer(client, &card.address, &peer));
    CHECK(pwc_bind(ctx, peer, &card.key, &store));
    CHECK(pwc_put_wait(store, place * LINE, line, LINE, pwc_cid_u64(place), 0));
}

int main(int argc, char **argv)
{
    const struct pwc_attr attr = {.job = "store", .size = PWC_OPEN};
    pwc_client *client;
    pwc_ctx *ctx;

    if (argc != 3 || (strcmp(argv[1], "serve") != 0 && strcmp(argv[1], "put") != 0)) {
        fprintf(stderr, "usage: %s serve LINES | put TEXT\n", argv[0]);
        return 2;
    }
    CHECK(pwc_init(&attr, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    if (strcmp(argv[1], "serve") == 0)
        serve(client, ctx, atoi(argv[2]));
    else
        put(client, ctx, argv[2]);
    CHECK(pwc_finalize(client));
    return 0;
}
