/*
 * A client's connection: requests in, replies with descriptors out.
 *
 * libuv only polls: descriptors travel by SCM_RIGHTS, which libuv passes for streams alone. A
 * request's frame stays in the socket until it is whole and noted in inflight.h's table, so that a
 * request is neither lost nor read in halves when this process ends. The table drops the request
 * when the last byte of its answer is sent.
 *
 * A client can neither make the daemon read without end (a few frames a wake), nor fill its memory
 * (its output and its user's are bounded, and its requests wait while it does not read), nor pass
 * it a descriptor (none is accepted).
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_STREAM_H
#define PWC_CONTROL_CLIENT_STREAM_H

#include <stdint.h>
#include <uv.h>
#include "daemon/control/clients/client.h"

int client_stream_open(struct client *c, client_on_request on_request, client_on_end on_end);
/* Frees what is buffered. The descriptor and its handle are the caller's to close. */
void client_stream_free(struct client *c);
/* Sends a reply. The descriptors are taken over, whatever happens. */
void client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                  uint32_t descriptor_count);
/* The body of a reply, whatever its id, for client_reply_body: memory that replies to many share.
 * The caller has a reference, and drops it. NULL: no memory, or the reply is too long. */
struct client_body *client_body_new(struct quota_user *user, const Pwc__ClientReply *reply);
void client_body_drop(struct client_body *body);
/* Sends a reply with this body to a request of a client of the same user; `ends`: it is the last
 * reply. NULL: the client cannot be answered. */
void client_reply_body(struct client *c, uint32_t request, struct client_body *body, bool ends);
/* Polls again: continues to read if there is room for the consequences of a request. */
void client_stream_resume(struct client *c);
/* The number of the request at the head of the client's socket; 0: there is none. */
uint32_t client_next_request(struct client *c);
/* The callback of control.resume: ends clients whose output is too large, or could not be kept. */
void clients_resume(uv_async_t *async);
/* The callback of control.turn_end: reads on from the clients whose user has its turn again. */
void clients_next_turn(uv_check_t *check);
/* The callback of control.again: looks again at frames that were not whole. */
void clients_look_again(uv_timer_t *timer);

#endif
