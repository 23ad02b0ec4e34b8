/*
 * A client's connection: it reads requests, and sends replies with descriptors.
 *
 * libuv only polls, because replies carry descriptors by SCM_RIGHTS, which libuv passes only with
 * its own streams. A request's frame stays in the socket until it is complete and noted in
 * inflight.h's table, so no request is lost or read in part when this process ends. The table drops
 * the request when the last byte of its answer is sent.
 *
 * A client can neither make the daemon read without end (a few frames a wake), nor fill the
 * daemon's memory (its output and its user's are bounded, and its requests wait while it does not
 * read), nor pass the daemon a descriptor (none is accepted).
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_STREAM_H
#define PWC_CONTROL_CLIENT_STREAM_H

#include <stdint.h>
#include <uv.h>
#include "daemon/control/clients/client.h"

int client_stream_open(struct client *c, client_on_request on_request, client_on_end on_end);
/* Frees what is buffered. The caller closes the descriptor and its handle. */
void client_stream_free(struct client *c);
/* Sends a reply. The descriptors are taken over in any case. */
void client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                  uint32_t descriptor_count);
/* Makes the body of a reply, which does not contain the request's number, for client_reply_body:
 * replies to many clients share this memory. The caller has a reference, and drops it. NULL: no
 * memory, or the reply is too long. */
struct client_body *client_body_new(struct quota_user *user, const Pwc__ClientReply *reply);
void client_body_drop(struct client_body *body);
/* Sends a reply with this body to a request of a client of the same user; `ends`: it is the last
 * reply. Where `body` is NULL, the client cannot be answered, and will be ended. */
void client_reply_body(struct client *c, uint32_t request, struct client_body *body, bool ends);
/* Polls the socket again, and continues to read if one more request may be under way. */
void client_stream_resume(struct client *c);
/* The number of the request at the head of the client's socket; 0: there is none. */
uint32_t client_next_request(struct client *c);
/* Lets the loop end the client soon. */
void client_doom(struct client *c, enum client_doom why);
/* The callback of control.resume: ends clients with a doom. */
void clients_resume(uv_async_t *async);
/* The callback of control.turn_end: continues to read from clients whose user has a turn again. */
void clients_next_turn(uv_check_t *check);
/* The callback of control.again: looks again at frames that were not complete. */
void clients_look_again(uv_timer_t *timer);

#endif
