/*
 * Owns nothing: makes the texts that say why a team is broken or a call was refused. Thread: the
 * one that owns the context.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "clientlib/teams/team.h"
#include "proto/word_abi.h"

int team_refuse(struct pwc_team *t, int error, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(t->text, sizeof(t->text), format, values);
    va_end(values);
    return error;
}

static const char *name_of(const char *const *names, uint32_t count, uint32_t number)
{
    return number < count && names[number] ? names[number] : "?";
}

static const char *op_name(uint8_t op)
{
    static const char *const names[] = {
        [WORD_ADD] = "add",   [WORD_PROD] = "prod",     [WORD_MIN] = "min",
        [WORD_MAX] = "max",   [WORD_AND] = "and",       [WORD_OR] = "or",
        [WORD_XOR] = "xor",   [FOLD_LAND] = "land",     [FOLD_LOR] = "lor",
        [FOLD_LXOR] = "lxor", [FOLD_MINLOC] = "minloc", [FOLD_MAXLOC] = "maxloc",
    };

    return name_of(names, sizeof(names) / sizeof(names[0]), op);
}

static const char *type_name(uint8_t type)
{
    static const char *const names[] = {
        "i8",  "u8",  "i16", "u16",  "i32",  "u32",    "i64",    "u64",
        "f32", "f64", "c64", "c128", "bool", "f64_at", "i64_at",
    };

    return name_of(names, sizeof(names) / sizeof(names[0]), type);
}

static bool has_type(uint8_t kind)
{
    return kind >= TEAM_REDUCE && kind <= TEAM_REDUCE_SCATTER;
}

static bool has_root(uint8_t kind)
{
    return kind == TEAM_BCAST || kind == TEAM_REDUCE || kind == TEAM_GATHER ||
           kind == TEAM_SCATTER || kind == TEAM_GATHERV || kind == TEAM_SCATTERV;
}

/* "allreduce of 3 f64 by add", "bcast of 100 bytes from 2", ... */
static void describe(uint64_t signature, char *text, size_t size)
{
    uint8_t kind = team_signature_kind(signature);
    const char *name = team_kind_name(kind);
    uint32_t count = team_signature_count(signature);
    char of[64] = "", root[32] = "";

    name = name ? name : "?";
    if (kind == TEAM_BARRIER && count == TEAM_FREEING)
        name = "pwc_team_free";
    if (has_type(kind))
        (void)snprintf(of, sizeof(of), " %s by %s", type_name(team_signature_type(signature)),
                       op_name(team_signature_op(signature)));
    else if (kind != TEAM_BARRIER)
        (void)snprintf(of, sizeof(of), " bytes");
    if (has_root(kind))
        (void)snprintf(root, sizeof(root), ", root %u", team_signature_root(signature));
    if (kind == TEAM_BARRIER)
        (void)snprintf(text, size, "%s", name);
    else if (count & 0x8000)
        (void)snprintf(text, size, "%s of many%s%s", name, of, root);
    else
        (void)snprintf(text, size, "%s of %u%s%s", name, count, of, root);
}

void team_explain(struct pwc_team *t, const struct team_reason *reason)
{
    char first[96], second[96];

    if (t->status < 0)
        return;
    if (reason->status == -EHOSTDOWN && reason->rank[0] >= t->roster.size) {
        (void)team_refuse(t, 0,
                          "a node of the team is lost, or its daemon has lost its state; make a "
                          "team of those that are left with pwc_team_shrink");
        return;
    }
    if (reason->status == -EHOSTDOWN) {
        (void)team_refuse(t, 0,
                          "member %u of the team has ended, or could not take part in it; make a "
                          "team of those that are left with pwc_team_shrink",
                          reason->rank[0]);
        return;
    }
    if (reason->status != -EBADMSG || reason->signature[0] == 0) {
        (void)team_refuse(t, 0,
                          "the memory that members of the team share makes no sense: one of "
                          "them has written to it what it must not");
        return;
    }
    describe(reason->signature[0], first, sizeof(first));
    if (reason->rank[1] >= t->roster.size) {
        (void)team_refuse(t, 0,
                          "call %llu of the team, %s, does not fit the others': a member has "
                          "written to the memory that members share what it must not",
                          (unsigned long long)reason->sequence, first);
        return;
    }
    if (reason->signature[0] == reason->signature[1]) {
        (void)team_refuse(
            t, 0,
            "the nodes of members %u and %u do not agree about call %llu of the team, "
            "%s: its length differs, or `collective` in their pwcd.conf",
            reason->rank[0], reason->rank[1], (unsigned long long)reason->sequence, first);
        return;
    }
    describe(reason->signature[1], second, sizeof(second));
    (void)team_refuse(t, 0,
                      "members called differently: call %llu of the team was %s at member %u, and "
                      "%s at member %u",
                      (unsigned long long)reason->sequence, first, reason->rank[0], second,
                      reason->rank[1]);
}

size_t pwc_team_error_text(pwc_team *t, char *text, size_t size)
{
    int length = snprintf(text, size, "%s", t->text);

    return length < 0 ? 0 : (size_t)length;
}
