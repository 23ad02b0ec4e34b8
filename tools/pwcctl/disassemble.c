/* Writes instructions as text (disassemble.h). Owns nothing. */
#include "tools/pwcctl/disassemble.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* The line that is being written. */
struct line {
    const struct handler_instruction *in;
    uint32_t place;
    char *text;
    bool known;
};

static void put(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->text, DISASSEMBLE_TEXT_MAX, format, args);
    va_end(args);
    l->known = true;
}

/* ---- arithmetic -------------------------------------------------------------------------------
 */

/* The second operand: a register, or a number. */
static const char *operand(const struct line *l, char letter, char to[16])
{
    if (l->in->opcode & CODE_X)
        snprintf(to, 16, "%c%u", letter, code_src(l->in));
    else
        snprintf(to, 16, "%" PRId32, l->in->imm);
    return to;
}

static void move(struct line *l, char letter, const char *second)
{
    unsigned dst = code_dst(l->in);
    if (l->in->offset == 0)
        put(l, "%c%u = %s", letter, dst, second);
    else
        put(l, "%c%u = (s%d)%s", letter, dst, l->in->offset, second);
}

static void turn(struct line *l)
{
    unsigned dst = code_dst(l->in);
    const char *how = (l->in->opcode & CODE_CLASS) == CODE_ALU64 ? "bswap"
                      : l->in->opcode & CODE_X                   ? "be"
                                                                 : "le";
    put(l, "r%u = %s%" PRId32 " r%u", dst, how, l->in->imm, dst);
}

static void arithmetic(struct line *l)
{
    static const char *const signs[] = {
        "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "", "%=", "^=", "", "s>>="};
    char letter = (l->in->opcode & CODE_CLASS) == CODE_ALU64 ? 'r' : 'w', second[16];
    unsigned code = l->in->opcode >> 4, dst = code_dst(l->in);
    bool with_sign = (code << 4 == CODE_DIV || code << 4 == CODE_MOD) && l->in->offset == 1;
    operand(l, letter, second);
    if (code << 4 == CODE_MOV)
        move(l, letter, second);
    else if (code << 4 == CODE_NEG)
        put(l, "%c%u = -%c%u", letter, dst, letter, dst);
    else if (code << 4 == CODE_END)
        turn(l);
    else if (code < sizeof(signs) / sizeof(signs[0]))
        put(l, "%c%u %s%s %s", letter, dst, with_sign ? "s" : "", signs[code], second);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

enum { ADDRESS_MAX = 40 };

/* "r1 + 8". */
static const char *place_of(const struct line *l, unsigned base, char to[ADDRESS_MAX])
{
    snprintf(to, ADDRESS_MAX, "r%u %c %d", base, l->in->offset < 0 ? '-' : '+',
             l->in->offset < 0 ? -l->in->offset : l->in->offset);
    return to;
}

/* "(u32 *)(r1 + 8)". */
static const char *address(const struct line *l, char sign, unsigned base, char to[ADDRESS_MAX])
{
    char place[ADDRESS_MAX];
    snprintf(to, ADDRESS_MAX, "(%c%u *)(%.24s)", sign, 8 * code_bytes(l->in->opcode),
             place_of(l, base, place));
    return to;
}

static void atomic(struct line *l)
{
    static const struct {
        int32_t operation;
        const char *name, *sign;
    } rows[] = {{CODE_ADD, "add", "+="},
                {CODE_OR, "or", "|="},
                {CODE_AND, "and", "&="},
                {CODE_XOR, "xor", "^="}};
    char letter = (l->in->opcode & CODE_SIZE) == CODE_DW ? 'r' : 'w', at[ADDRESS_MAX];
    unsigned src = code_src(l->in);
    place_of(l, code_dst(l->in), at);
    if (l->in->imm == CODE_XCHG)
        put(l, "%c%u = xchg%s(%s, %c%u)", letter, src, letter == 'r' ? "_64" : "32_32", at, letter,
            src);
    else if (l->in->imm == CODE_CMPXCHG)
        put(l, "%c0 = cmpxchg%s(%s, %c0, %c%u)", letter, letter == 'r' ? "_64" : "32_32", at,
            letter, letter, src);
    address(l, 'u', code_dst(l->in), at);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (l->in->imm == rows[i].operation)
            put(l, "lock *%s %s %c%u", at, rows[i].sign, letter, src);
        if (l->in->imm == (rows[i].operation | CODE_FETCH))
            put(l, "%c%u = atomic_fetch_%s(%s, %c%u)", letter, src, rows[i].name, at, letter, src);
    }
}

static void memory(struct line *l)
{
    char at[ADDRESS_MAX];
    switch (l->in->opcode & (CODE_MODE | CODE_CLASS)) {
    case CODE_MEM | CODE_LDX:
        put(l, "r%u = *%s", code_dst(l->in), address(l, 'u', code_src(l->in), at));
        break;
    case CODE_MEMSX | CODE_LDX:
        put(l, "r%u = *%s", code_dst(l->in), address(l, 's', code_src(l->in), at));
        break;
    case CODE_MEM | CODE_ST:
        put(l, "*%s = %" PRId32, address(l, 'u', code_dst(l->in), at), l->in->imm);
        break;
    case CODE_MEM | CODE_STX:
        put(l, "*%s = r%u", address(l, 'u', code_dst(l->in), at), code_src(l->in));
        break;
    case CODE_ATOMIC | CODE_STX:
        atomic(l);
        break;
    default:
        break;
    }
}

/* Writes a number of 64 bits; if it is an address of a window, also as that. */
static void wide(struct line *l)
{
    static const char *const windows[HANDLER_WINDOWS] = {"",      "stack", "context", "packet",
                                                         "state", "host",  "scratch", "constants"};
    uint64_t value = (uint32_t)l->in[0].imm | (uint64_t)(uint32_t)l->in[1].imm << 32;
    uint64_t offset = value & HANDLER_OFFSET_MASK;
    if (value != offset && offset <= UINT32_MAX)
        put(l, "r%u = %" PRId64 " ll <%s + %" PRIu64 ">", code_dst(l->in), (int64_t)value,
            windows[value >> HANDLER_WINDOW_SHIFT], offset);
    else
        put(l, "r%u = %" PRId64 " ll", code_dst(l->in), (int64_t)value);
}

/* ---- jumps ------------------------------------------------------------------------------------
 */

static const char *helper_name(int32_t number)
{
    static const char *const names[HELPERS] = {
        [HELPER_COPY] = "copy",
        [HELPER_ACCUMULATE] = "accumulate",
        [HELPER_SCATTER] = "scatter",
        [HELPER_GATHER] = "gather",
        [HELPER_COMPARE] = "compare",
        [HELPER_FIND] = "find",
        [HELPER_HASH] = "hash",
        [HELPER_CAS] = "cas",
        [HELPER_FETCH_ADD] = "fetch_add",
        [HELPER_F64] = "f64",
        [HELPER_F32] = "f32",
        [HELPER_PUT] = "put",
        [HELPER_PUT_HOST] = "put_host",
        [HELPER_GET] = "get",
        [HELPER_ATOMIC] = "atomic",
        [HELPER_MESSAGE] = "message",
        [HELPER_REPLY] = "reply",
        [HELPER_EVENT] = "event",
        [HELPER_TARGET_OF] = "target_of",
        [HELPER_COUNTER] = "counter",
        [HELPER_COUNTER_ADD] = "counter_add",
        [HELPER_COUNTER_SET] = "counter_set",
        [HELPER_NOW] = "now",
        [HELPER_TRACE] = "trace",
    };
    const char *name = number >= 0 && number < HELPERS ? names[number] : NULL;
    return name ? name : "?";
}

static void call(struct line *l)
{
    if (code_src(l->in) == CODE_CALL_HELPER)
        put(l, "call %" PRId32 " <%s>", l->in->imm, helper_name(l->in->imm));
    else if (code_src(l->in) == CODE_CALL_LOCAL)
        put(l, "call %+" PRId32 " <%" PRId64 ">", l->in->imm, (int64_t)l->place + 1 + l->in->imm);
}

static void jump(struct line *l)
{
    static const char *const signs[] = {"",    "==", ">", ">=", "&",  "!=", "s>",
                                        "s>=", "",   "",  "<",  "<=", "s<", "s<="};
    unsigned code = l->in->opcode >> 4;
    bool narrow = (l->in->opcode & CODE_CLASS) == CODE_JMP32;
    int32_t far = code << 4 == CODE_JA && narrow ? l->in->imm : l->in->offset;
    int64_t to = (int64_t)l->place + 1 + far;
    char letter = narrow ? 'w' : 'r', second[16];
    if (l->in->opcode == CODE_DO_EXIT)
        put(l, "exit");
    else if (l->in->opcode == CODE_DO_CALL)
        call(l);
    else if (code << 4 == CODE_JA)
        put(l, "goto%s %+" PRId32 " <%" PRId64 ">", narrow ? "l" : "", far, to);
    else if (code < sizeof(signs) / sizeof(signs[0]) && signs[code][0] != '\0')
        put(l, "if %c%u %s %s goto %+d <%" PRId64 ">", letter, code_dst(l->in), signs[code],
            operand(l, letter, second), far, to);
}

/* ---- all --------------------------------------------------------------------------------------
 */

uint32_t disassemble_one(const struct handler_instruction *code, uint32_t place, uint32_t count,
                         char text[DISASSEMBLE_TEXT_MAX])
{
    struct line l = {.in = &code[place], .place = place, .text = text};
    bool is_wide = l.in->opcode == CODE_LD_DW && place + 1 < count;
    uint64_t bytes;
    switch (l.in->opcode & CODE_CLASS) {
    case CODE_ALU:
    case CODE_ALU64:
        arithmetic(&l);
        break;
    case CODE_JMP:
    case CODE_JMP32:
        jump(&l);
        break;
    case CODE_LD:
        if (is_wide)
            wide(&l);
        break;
    default:
        memory(&l);
        break;
    }
    memcpy(&bytes, l.in, sizeof(bytes));
    if (!l.known)
        put(&l, "<unknown> 0x%016" PRIx64, bytes);
    return is_wide ? 2 : 1;
}

static const char *const stages[HANDLER_STAGES] = {"header", "payload", "completion"};

/* The lines in front of an instruction at which a function or a handler begins. */
static void print_names(const struct handler_image *image, uint32_t place, FILE *to)
{
    const struct handler_function *functions = image_functions(image);
    const char *name = NULL, *role = NULL;
    for (uint32_t i = 0; i < image->functions; i++)
        if (functions[i].place == place)
            name = functions[i].name;
    for (unsigned stage = 0; stage < HANDLER_STAGES; stage++)
        if (image->entry[stage] == place)
            role = stages[stage];
    if (name || role)
        fprintf(to, "%s%.*s:", place > 0 ? "\n" : "", HANDLER_NAME_MAX, name ? name : role);
    if (role)
        fprintf(to, "  (%s handler)", role);
    if (name || role)
        fputc('\n', to);
}

int disassemble_print(const struct handler_image *image, size_t bytes, FILE *to)
{
    const struct handler_instruction *code = image_code(image) + 1;
    char text[DISASSEMBLE_TEXT_MAX];
    if (bytes < sizeof(*image) || image->magic != HANDLER_IMAGE_MAGIC ||
        image->instructions > HANDLER_INSTRUCTIONS_MAX ||
        image->constants > HANDLER_CONSTANTS_MAX || image->functions > HANDLER_FUNCTIONS_MAX ||
        bytes != image_bytes(image->instructions, image->constants, image->functions))
        return -EBADMSG;
    for (uint32_t place = 0; place < image->instructions;) {
        uint32_t taken = disassemble_one(code, place, image->instructions, text);
        print_names(image, place, to);
        fprintf(to, "%8" PRIu32 ": %s\n", place, text);
        place += taken;
    }
    return 0;
}
