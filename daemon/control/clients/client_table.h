/*
 * Finds what belongs to a client: its state, its sessions, its requests under way, and how lines of
 * the log name it. Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_TABLE_H
#define PWC_CONTROL_CLIENT_TABLE_H

#include <stdint.h>
#include <sys/types.h>
#include "daemon/control/clients/client.h"

/* Moves the client to another state, and counts the user's connections without Hello. */
void client_becomes(struct client *c, enum client_state state);
/* Finds this client's open session with this handle; NULL: there is none. */
struct client_session *client_session_find(struct client *c, uint32_t handle);
/* Whether an engine has the client, under the handle c->number. */
bool client_is_in_engine(const struct client *c);
/* The client's requests under way. */
struct inflight_entry *client_inflight(const struct client *c);
/* How lines of the log name the client. */
struct log_subject client_subject(const struct client *c);
/* Finds the client's relation to this daemon, before its first session. */
void client_find_relation(struct client *c);
/* Starts the client's deadline: a connection that only looks has to ask again in time. */
void client_await_question(struct client *c);

#endif
