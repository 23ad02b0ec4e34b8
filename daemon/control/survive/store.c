/* Owns the table of descriptors that outlive the process (store.h). Thread: control. */
#include "daemon/control/survive/store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "daemon/control/clients/message.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* The hash FNV-1a. */
static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;

    while (*name)
        hash = (hash ^ (uint8_t)*name++) * 16777619u;
    return hash & (STORE_HASHES - 1);
}

static struct stored *find(const struct store *s, const char *name)
{
    uint32_t number = s->first[hash_of(name)];

    while (number != 0 && strcmp(s->table[number - 1].name, name) != 0)
        number = s->table[number - 1].next;
    return number != 0 ? &s->table[number - 1] : NULL;
}

/* The place in a list that holds this number; for 0, the end of the list of this name. */
static uint32_t *place_of(struct store *s, const char *name, uint32_t number)
{
    uint32_t *at = &s->first[hash_of(name)];

    while (*at != number)
        at = &s->table[*at - 1].next;
    return at;
}

static uint32_t bytes_of(const struct stored *entry)
{
    return (uint32_t)strlen(entry->name) + 1;
}

/* NULL: the user is charged for no name. */
static struct store_user *user_of(const struct store *s, uint32_t uid)
{
    for (struct store_user *u = s->users; u < s->users + s->user_count; u++)
        if (u->uid == uid)
            return u;
    return NULL;
}

static struct store_user *user_begin(struct store *s, uint32_t uid)
{
    if (s->user_count == s->user_room) {
        uint32_t room = s->user_room ? 2 * s->user_room : 8;
        struct store_user *users = realloc(s->users, room * sizeof(*users));

        if (!users)
            return NULL;
        s->users = users;
        s->user_room = room;
    }
    s->users[s->user_count] = (struct store_user){.uid = uid};
    return &s->users[s->user_count++];
}

/* Charges a user for a name that nobody is charged for. False: there is no memory for that. */
static bool charge(struct store *s, struct stored *entry, uint32_t uid)
{
    struct store_user *u = user_of(s, uid);

    if (uid == STORE_NOBODY)
        return true;
    if (!u)
        u = user_begin(s, uid);
    if (!u)
        return false;
    entry->uid = uid;
    u->names++;
    u->bytes += bytes_of(entry);
    return true;
}

static void discharge(struct store *s, const struct stored *entry)
{
    struct store_user *u = user_of(s, entry->uid);

    if (!u)
        return;
    u->names--;
    u->bytes -= bytes_of(entry);
    if (u->names == 0)
        *u = s->users[--s->user_count];
}

static struct stored *append(struct store *s, const char *name, int descriptor)
{
    struct stored *entry;

    if (s->count == s->room) {
        uint32_t room = s->room ? 2 * s->room : 64;
        struct stored *table = realloc(s->table, room * sizeof(*table));

        if (!table)
            return NULL;
        s->table = table;
        s->room = room;
    }
    entry = &s->table[s->count++];
    *entry = (struct stored){.descriptor = descriptor, .uid = STORE_NOBODY};
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    s->bytes += bytes_of(entry);
    *place_of(s, entry->name, 0) = s->count;
    return entry;
}

static void forget(struct store *s, struct stored *entry)
{
    uint32_t number = (uint32_t)(entry - s->table) + 1;

    s->bytes -= bytes_of(entry);
    discharge(s, entry);
    *place_of(s, entry->name, number) = entry->next;
    if (number != s->count) { /* the last entry moves to this place */
        *place_of(s, s->table[s->count - 1].name, s->count) = number;
        *entry = s->table[s->count - 1];
    }
    s->count--;
}

/* ---- descriptors from the start ------------------------------------------------------------- */

int store_open(struct store *s)
{
    char **names = NULL;
    int count = sd_listen_fds_with_names(1, &names);
    int rc = 0;

    *s = (struct store){.kept = getenv("FDSTORE") && getenv("NOTIFY_SOCKET")};
    for (int i = 0; i < count; i++) {
        int descriptor = SD_LISTEN_FDS_START + i;

        if (!append(s, names[i], descriptor)) {
            close(descriptor);
            rc = -ENOMEM;
        }
        free(names[i]);
    }
    free(names);
    return rc;
}

void store_close(struct store *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->table[i].taken)
            close(s->table[i].descriptor);
    free(s->table);
    free(s->users);
    *s = (struct store){0};
}

static void say_removed(const char *name)
{
    sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

void store_clear(struct store *s)
{
    for (uint32_t i = 0; s->kept && i < s->count; i++)
        say_removed(s->table[i].name);
    memset(s->first, 0, sizeof(s->first));
    s->count = s->user_count = 0;
    s->kept = false;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Whether there is room for one more name of this user within one part of `parts` of all bytes and
 * of the user's. */
static bool has_room(const struct store *s, uint32_t uid, uint32_t parts)
{
    const struct store_user *u = user_of(s, uid);

    if (s->count >= STORE_MAX || s->bytes + STORE_NAME_MAX > STORE_BYTES / parts)
        return false;
    return uid == STORE_NOBODY || ((u ? u->names : 0) < s->user_names &&
                                   (u ? u->bytes : 0) + STORE_NAME_MAX <= s->user_bytes / parts);
}

static bool add(struct store *s, uint32_t uid, uint32_t parts, int descriptor, const char *format,
                va_list arguments)
{
    char name[STORE_NAME_MAX], message[STORE_NAME_MAX + 64];
    struct stored *entry;

    if (!s->kept || descriptor < 0 || !has_room(s, uid, parts))
        return !s->kept;
    vsnprintf(name, sizeof(name), format, arguments);
    entry = append(s, name, descriptor);
    if (!entry)
        return false;
    entry->taken = true;
    if (!charge(s, entry, uid)) {
        forget(s, entry);
        return false;
    }
    /* With FDPOLL=0, systemd keeps the descriptor also when its other end hangs up. */
    snprintf(message, sizeof(message), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
    if (sd_pid_notify_with_fds(0, 0, message, &descriptor, 1) >= 0)
        return true;
    forget(s, entry);
    return false;
}

bool store_add(struct store *s, int descriptor, const char *format, ...)
{
    va_list arguments;
    bool added;

    va_start(arguments, format);
    added = add(s, STORE_NOBODY, 1, descriptor, format, arguments);
    va_end(arguments);
    return added;
}

bool store_add_for(struct store *s, uint32_t uid, int descriptor, const char *format, ...)
{
    va_list arguments;
    bool added;

    va_start(arguments, format);
    added = add(s, uid, 1, descriptor, format, arguments);
    va_end(arguments);
    return added;
}

bool store_add_spare(struct store *s, uint32_t uid, int descriptor, const char *format, ...)
{
    va_list arguments;
    bool added;

    va_start(arguments, format);
    added = add(s, uid, 2, descriptor, format, arguments);
    va_end(arguments);
    return added;
}

static struct stored *find_named(const struct store *s, const char *format, va_list arguments)
{
    char name[STORE_NAME_MAX];

    vsnprintf(name, sizeof(name), format, arguments);
    return find(s, name);
}

void store_remove(struct store *s, const char *format, ...)
{
    struct stored *entry;
    va_list arguments;

    va_start(arguments, format);
    entry = find_named(s, format, arguments);
    va_end(arguments);
    if (!entry)
        return;
    say_removed(entry->name);
    forget(s, entry);
}

static int take(struct stored *entry)
{
    if (!entry || entry->taken)
        return -1;
    entry->taken = true;
    return entry->descriptor;
}

int store_take(struct store *s, const char *format, ...)
{
    struct stored *entry;
    va_list arguments;

    va_start(arguments, format);
    entry = find_named(s, format, arguments);
    va_end(arguments);
    return take(entry);
}

/* Without memory the name stays uncharged: what is inherited is served all the same. */
static void charge_found(struct store *s, struct stored *entry, uint32_t uid)
{
    if (entry && entry->uid == STORE_NOBODY)
        (void)charge(s, entry, uid);
}

int store_take_for(struct store *s, uint32_t uid, const char *format, ...)
{
    struct stored *entry;
    va_list arguments;

    va_start(arguments, format);
    entry = find_named(s, format, arguments);
    va_end(arguments);
    charge_found(s, entry, uid);
    return take(entry);
}

void store_charge(struct store *s, uint32_t uid, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    charge_found(s, find_named(s, format, arguments), uid);
    va_end(arguments);
}

void store_untake(struct store *s, const char *format, ...)
{
    struct stored *entry;
    va_list arguments;

    va_start(arguments, format);
    entry = find_named(s, format, arguments);
    va_end(arguments);
    if (entry)
        entry->taken = false;
}

bool store_has(const struct store *s, const char *format, ...)
{
    const struct stored *entry;
    va_list arguments;

    va_start(arguments, format);
    entry = find_named(s, format, arguments);
    va_end(arguments);
    return entry != NULL;
}

const char *store_next(const struct store *s, uint32_t *at, const char *prefix)
{
    while (*at < s->count) {
        const struct stored *entry = &s->table[(*at)++];

        if (!entry->taken && strncmp(entry->name, prefix, strlen(prefix)) == 0)
            return entry->name;
    }
    return NULL;
}

static bool is_ours(const char *name)
{
    /* Version 0.1 named "inflight" "journal"; such an entry is dropped. */
    static const char *const ours[] = {"keeper",   "lock",      "listen",  "inflight",
                                       "members",  "directory", "journal", "client.",
                                       "process.", "guest.",    "pair.",   "roll."};

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0)
            return true;
    return isdigit((unsigned char)*name);
}

uint32_t store_foreign(const struct store *s)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->count; i++)
        count += !s->table[i].taken && !is_ours(s->table[i].name);
    return count;
}

const char *store_next_foreign(const struct store *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->table[i].taken && !is_ours(s->table[i].name))
            return s->table[i].name;
    return NULL;
}

void store_drop_rest(struct store *s)
{
    for (uint32_t i = 0; i < s->count;) {
        struct stored *entry = &s->table[i];

        if (entry->taken) {
            i++;
            continue;
        }
        close(entry->descriptor);
        say_removed(entry->name);
        forget(s, entry);
    }
}

/* ---- from process to process ----------------------------------------------------------------- */

static int send_message(int socket, const char *name, int descriptor)
{
    _Alignas(struct cmsghdr) uint8_t room[MESSAGE_ROOM(1)] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)name, .iov_len = strlen(name) + 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (descriptor >= 0)
        message_attach(&message, room, &descriptor, 1);
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int store_send_one(int socket, const char *name, int descriptor)
{
    return send_message(socket, name, descriptor);
}

int store_send(const struct store *s, int socket)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < s->count; i++)
        rc = send_message(socket, s->table[i].name, s->table[i].descriptor);
    return rc;
}

int store_send_end(int socket)
{
    return send_message(socket, "", -1);
}

/* Returns 1: an entry was received; 0: the end mark; or a negative errno. */
static int receive_one(struct store *s, int socket)
{
    _Alignas(struct cmsghdr) uint8_t room[MESSAGE_ROOM(1)];
    char name[STORE_NAME_MAX];
    struct iovec part = {.iov_base = name, .iov_len = sizeof(name)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *head;
    ssize_t got;
    int descriptor;

    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 ? -errno : -EPIPE;
    name[got - 1] = '\0';
    head = CMSG_FIRSTHDR(&message);
    if (!head)
        return *name ? -EPROTO : 0;
    memcpy(&descriptor, CMSG_DATA(head), sizeof(descriptor));
    if (append(s, name, descriptor))
        return 1;
    close(descriptor);
    return -ENOMEM;
}

int store_receive(struct store *s, int socket)
{
    int rc;

    do
        rc = receive_one(s, socket);
    while (rc == 1);
    return rc;
}
