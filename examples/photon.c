/*
 * The two listings of the paper on LibPhotonNBC (docs/photon.md), with the calls of libpwc. The
 * ranks compute while a sum over all ranks is under way. First a local event reports the end of the
 * sum; then the program sums again with a request, and waits for the request.
 *
 *     photon [ROUNDS]
 */
#include <pwc/collective.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TAG 12345u

#define CHECK(call) check(#call, call)
static int check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "photon: %s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

/* A piece of work that does not need the sum. */
static uint64_t compute(uint64_t seed)
{
    for (unsigned i = 0; i < 1000; i++)
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return seed;
}

/* Listing 2: probe for the local completion id of the collective, and compute meanwhile. */
static void run_nonblocking_progress(pwc_ctx *ctx, uint64_t lid, uint64_t *work)
{
    struct pwc_event event;

    while (CHECK(pwc_probe(ctx, PWC_ANY, PWC_LOCAL, &event)) == 0 || event.id != lid)
        *work = compute(*work);
    CHECK(event.status);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 100, wrong = 0;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_team *team;
    pwc_request *request;
    struct pwc_status status;
    int64_t in, out, expected;
    uint64_t work = 1;

    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_team_world(ctx, NULL, &team));
    int64_t rank = pwc_team_rank(team), size = pwc_team_size(team);

    /* Listing 1: photon_collective_init, photon_collective_run. */
    for (unsigned round = 0; round < rounds; round++) {
        in = rank + round;
        CHECK(pwc_team_allreduce(team, &in, &out, 1, PWC_I64, PWC_ADD, pwc_cid_u64(TAG), 0));
        run_nonblocking_progress(ctx, TAG, &work);
        expected = size * (size - 1) / 2 + size * round;
        wrong += out != expected;
    }

    /* A persistent request keeps the parameters of the call, as a Photon request does. */
    CHECK(pwc_team_allreduce_init(team, &in, &out, 1, PWC_I64, PWC_ADD, PWC_CID_NONE, &request));
    for (unsigned round = 0; round < rounds; round++) {
        in = rank * round;
        CHECK(pwc_start(request));
        work = compute(work);
        CHECK(pwc_request_wait(request, &status, -1));
        CHECK(status.status);
        wrong += out != size * (size - 1) / 2 * round;
    }
    CHECK(pwc_request_free(request));
    if (rank == 0)
        printf("photon: %u sums of %lld ranks%s\n", 2 * rounds, (long long)size,
               wrong ? ": wrong" : "");
    CHECK(pwc_team_free(team));
    CHECK(pwc_finalize(client));
    return wrong > 0;
}
