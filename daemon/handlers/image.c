/* Owns nothing: the check of programs (image.h). Thread: the control thread. */
#include "daemon/handlers/image.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The program that is checked. */
struct program {
    const struct handler_image *image;
    const struct handler_instruction *code; /* instruction 0 */
    uint32_t count;
    uint8_t inside[HANDLER_INSTRUCTIONS_MAX / 8]; /* a bit for each instruction: it is a second
                                                   * half */
    struct image_error *error;
};

static int refuse(struct image_error *error, uint32_t place, const char *reason, int64_t value)
{
    *error = (struct image_error){.place = place, .reason = reason, .value = value, .function = ""};
    return -ENOEXEC;
}

static bool name_valid(const char name[HANDLER_NAME_MAX])
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$";
    size_t length = strnlen(name, HANDLER_NAME_MAX);

    if (length == 0 || length == HANDLER_NAME_MAX)
        return false;
    for (size_t i = 0; i < HANDLER_NAME_MAX; i++)
        if (i < length ? memchr(letters, name[i], sizeof(letters) - 1) == NULL : name[i] != 0)
            return false;
    return true;
}

/* Finds the function of an instruction; names may not be checked yet. */
static const char *function_of(const struct handler_image *image, uint32_t place)
{
    const struct handler_function *functions = image_functions(image);
    const char *name = "";

    for (uint32_t i = 0; i < image->functions; i++)
        if (functions[i].place <= place && name_valid(functions[i].name))
            name = functions[i].name;
    return name;
}

static int refuse_at(const struct program *p, uint32_t place, const char *reason, int64_t value)
{
    refuse(p->error, place, reason, value);
    if (place != HANDLER_NONE)
        p->error->function = function_of(p->image, place);
    return -ENOEXEC;
}

static bool is_inside(const struct program *p, uint32_t place)
{
    return p->inside[place / 8] >> (place % 8) & 1;
}

/* ---- fields --------------------------------------------------------------------------------- */

/* Flags: which fields of an instruction must be 0, and which registers it writes. */
enum use {
    NO_DST = 1 << 0,
    NO_SRC = 1 << 1,
    NO_OFFSET = 1 << 2,
    NO_IMM = 1 << 3,
    WRITES_DST = 1 << 4,
    WRITES_SRC = 1 << 5,
};

static int check_fields(const struct program *p, uint32_t place, unsigned use)
{
    const struct handler_instruction *in = &p->code[place];
    unsigned dst = code_dst(in), src = code_src(in);

    if (dst >= CODE_REGISTERS)
        return refuse_at(p, place, "there is no such register", dst);
    if (src >= CODE_REGISTERS)
        return refuse_at(p, place, "there is no such register", src);
    if ((use & WRITES_DST && dst == CODE_FRAME) || (use & WRITES_SRC && src == CODE_FRAME))
        return refuse_at(p, place, "register 10 can't be written", CODE_FRAME);
    if (use & NO_DST && dst != 0)
        return refuse_at(p, place, "the destination must be register 0", dst);
    if (use & NO_SRC && src != 0)
        return refuse_at(p, place, "the source must be register 0", src);
    if (use & NO_OFFSET && in->offset != 0)
        return refuse_at(p, place, "the offset must be 0", in->offset);
    if (use & NO_IMM && in->imm != 0)
        return refuse_at(p, place, "the immediate value must be 0", in->imm);
    return 0;
}

static int refuse_opcode(const struct program *p, uint32_t place)
{
    return refuse_at(p, place, "unknown instruction", p->code[place].opcode);
}

/* The second operand is a register or an immediate value: the flag for the unused one. */
static unsigned use_of_operand(uint8_t opcode)
{
    return opcode & CODE_X ? NO_IMM : NO_SRC;
}

/* ---- arithmetic -------------------------------------------------------------------------------
 */

static int check_move(const struct program *p, uint32_t place)
{
    const struct handler_instruction *in = &p->code[place];
    bool wide = (in->opcode & CODE_CLASS) == CODE_ALU64;
    unsigned use = use_of_operand(in->opcode) | WRITES_DST;

    if (in->opcode & CODE_X && (in->offset == 8 || in->offset == 16 || (wide && in->offset == 32)))
        return check_fields(p, place, use);
    return check_fields(p, place, use | NO_OFFSET);
}

static int check_turn(const struct program *p, uint32_t place)
{
    const struct handler_instruction *in = &p->code[place];

    if (in->opcode == (CODE_ALU64 | CODE_END | CODE_X))
        return refuse_opcode(p, place);
    if (in->imm != 16 && in->imm != 32 && in->imm != 64)
        return refuse_at(p, place, "bytes are turned in 16, 32 or 64 bits", in->imm);
    return check_fields(p, place, NO_SRC | NO_OFFSET | WRITES_DST);
}

static int check_arithmetic(const struct program *p, uint32_t place)
{
    const struct handler_instruction *in = &p->code[place];
    unsigned use = use_of_operand(in->opcode) | WRITES_DST;

    switch (in->opcode & 0xf0) {
    case CODE_MOV:
        return check_move(p, place);
    case CODE_END:
        return check_turn(p, place);
    case CODE_NEG:
        if (in->opcode & CODE_X)
            return refuse_opcode(p, place);
        return check_fields(p, place, NO_SRC | NO_OFFSET | NO_IMM | WRITES_DST);
    case CODE_DIV:
    case CODE_MOD:
        return check_fields(p, place, in->offset == 1 ? use : use | NO_OFFSET);
    case 0xe0:
    case 0xf0:
        return refuse_opcode(p, place);
    default:
        return check_fields(p, place, use | NO_OFFSET);
    }
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static int check_wide_load(struct program *p, uint32_t place)
{
    static const struct handler_instruction none = {0};
    struct handler_instruction second;

    if (p->code[place].opcode != CODE_LD_DW)
        return refuse_opcode(p, place);
    if (code_src(&p->code[place]) != 0)
        return refuse_at(p, place, "a reference that the loader should have resolved",
                         code_src(&p->code[place]));
    if (place + 1 == p->count)
        return refuse_at(p, place, "the second half of the instruction is missing", p->count);
    second = p->code[place + 1];
    second.imm = 0;
    if (memcmp(&second, &none, sizeof(none)) != 0)
        return refuse_at(p, place + 1, "the second half of an instruction holds more than a number",
                         second.opcode);
    p->inside[(place + 1) / 8] |= (uint8_t)(1u << ((place + 1) % 8));
    return check_fields(p, place, NO_SRC | NO_OFFSET | WRITES_DST);
}

static bool is_atomic(int32_t operation)
{
    switch (operation & ~CODE_FETCH) {
    case CODE_ADD:
    case CODE_OR:
    case CODE_AND:
    case CODE_XOR:
        return true;
    default:
        return operation == CODE_XCHG || operation == CODE_CMPXCHG;
    }
}

static int check_atomic(const struct program *p, uint32_t place)
{
    const struct handler_instruction *in = &p->code[place];
    unsigned size = in->opcode & CODE_SIZE;

    if (size != CODE_W && size != CODE_DW)
        return refuse_opcode(p, place);
    if (!is_atomic(in->imm))
        return refuse_at(p, place, "unknown atomic operation", in->imm);
    return check_fields(p, place, in->imm & CODE_FETCH && in->imm != CODE_CMPXCHG ? WRITES_SRC : 0);
}

static int check_memory(struct program *p, uint32_t place)
{
    uint8_t opcode = p->code[place].opcode;

    switch (opcode & (CODE_MODE | CODE_CLASS)) {
    case CODE_MEM | CODE_LDX:
        return check_fields(p, place, NO_IMM | WRITES_DST);
    case CODE_MEMSX | CODE_LDX:
        if ((opcode & CODE_SIZE) == CODE_DW)
            return refuse_opcode(p, place);
        return check_fields(p, place, NO_IMM | WRITES_DST);
    case CODE_MEM | CODE_ST:
        return check_fields(p, place, NO_SRC);
    case CODE_MEM | CODE_STX:
        return check_fields(p, place, NO_IMM);
    case CODE_ATOMIC | CODE_STX:
        return check_atomic(p, place);
    default:
        return (opcode & CODE_CLASS) == CODE_LD ? check_wide_load(p, place)
                                                : refuse_opcode(p, place);
    }
}

/* ---- jumps ------------------------------------------------------------------------------------
 */

static int check_call(const struct program *p, uint32_t place)
{
    const struct handler_instruction *in = &p->code[place];

    switch (code_src(in)) {
    case CODE_CALL_LOCAL:
        break;
    case CODE_CALL_HELPER:
        if (in->imm < 0 || in->imm >= HELPERS || !(HELPERS_KNOWN >> in->imm & 1))
            return refuse_at(p, place, "there is no helper of this number", in->imm);
        break;
    default:
        return refuse_at(p, place, "a call of a kind that there is not here", code_src(in));
    }
    return check_fields(p, place, NO_DST | NO_OFFSET);
}

static int check_jump(const struct program *p, uint32_t place)
{
    uint8_t opcode = p->code[place].opcode;

    switch (opcode & 0xf0) {
    case CODE_JA:
        if (opcode & CODE_X)
            return refuse_opcode(p, place);
        return check_fields(
            p, place, NO_DST | NO_SRC | ((opcode & CODE_CLASS) == CODE_JMP ? NO_IMM : NO_OFFSET));
    case CODE_CALL:
        return opcode == CODE_DO_CALL ? check_call(p, place) : refuse_opcode(p, place);
    case CODE_EXIT:
        if (opcode != CODE_DO_EXIT)
            return refuse_opcode(p, place);
        return check_fields(p, place, NO_DST | NO_SRC | NO_OFFSET | NO_IMM);
    case 0xe0:
    case 0xf0:
        return refuse_opcode(p, place);
    default:
        return check_fields(p, place, use_of_operand(opcode));
    }
}

/* Whether the instruction is a jump or a call in the program, and how far it goes. */
static bool goes(const struct handler_instruction *in, int64_t *far)
{
    unsigned class = in->opcode & CODE_CLASS;

    if (class != CODE_JMP && class != CODE_JMP32)
        return false;
    if (in->opcode == CODE_DO_EXIT)
        return false;
    if (in->opcode == CODE_DO_CALL) {
        *far = in->imm;
        return code_src(in) == CODE_CALL_LOCAL;
    }
    *far = in->opcode == (CODE_JMP32 | CODE_JA) ? in->imm : in->offset;
    return true;
}

static int check_target(const struct program *p, uint32_t place)
{
    int64_t far, to;

    if (!goes(&p->code[place], &far))
        return 0;
    to = (int64_t)place + 1 + far;
    if (to < 0 || to >= p->count)
        return refuse_at(p, place, "the jump leaves the program", to);
    if (is_inside(p, (uint32_t)to))
        return refuse_at(p, place, "the jump goes into the middle of an instruction", to);
    return 0;
}

/* ---- all --------------------------------------------------------------------------------------
 */

static int check_instruction(struct program *p, uint32_t place)
{
    switch (p->code[place].opcode & CODE_CLASS) {
    case CODE_ALU:
    case CODE_ALU64:
        return check_arithmetic(p, place);
    case CODE_JMP:
    case CODE_JMP32:
        return check_jump(p, place);
    default:
        return check_memory(p, place);
    }
}

static int check_code(struct program *p)
{
    uint8_t last = p->code[p->count - 1].opcode;
    int rc;

    for (uint32_t i = 0; i < p->count; i++) {
        if (is_inside(p, i))
            continue;
        rc = check_instruction(p, i);
        if (rc != 0)
            return rc;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        rc = is_inside(p, i) ? 0 : check_target(p, i);
        if (rc != 0)
            return rc;
    }
    /* The second half of an instruction has the opcode 0, so this also refuses such a half at the
     * end. */
    if (last != CODE_DO_EXIT && last != (CODE_JMP | CODE_JA) && last != (CODE_JMP32 | CODE_JA))
        return refuse_at(p, p->count - 1, "the last instruction is neither an exit nor a jump",
                         last);
    return 0;
}

static int check_entries(const struct program *p, const uint32_t entry[HANDLER_STAGES])
{
    unsigned handlers = 0;

    for (unsigned i = 0; i < HANDLER_STAGES; i++) {
        if (entry[i] == HANDLER_NONE)
            continue;
        if (entry[i] >= p->count || is_inside(p, entry[i]))
            return refuse_at(p, HANDLER_NONE, "a handler does not start at an instruction",
                             entry[i]);
        handlers++;
    }
    return handlers > 0 ? 0 : refuse_at(p, HANDLER_NONE, "the program has no handler", 0);
}

static int check_functions(const struct program *p, const struct handler_function *functions,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct handler_function *f = &functions[i];

        if (f->place >= p->count || is_inside(p, f->place))
            return refuse_at(p, HANDLER_NONE, "a function does not start at an instruction",
                             f->place);
        if (i > 0 && f->place <= functions[i - 1].place)
            return refuse_at(p, f->place, "functions are not in the order of their places", i);
        if (!name_valid(f->name))
            return refuse_at(p, f->place,
                             "a function's name is empty, not terminated, or has "
                             "other characters than letters, digits and _.$",
                             i);
    }
    return 0;
}

/* Checks the head, the size, and the two stop instructions. */
static int check_frame(const struct handler_image *image, size_t size, struct image_error *error)
{
    static const struct handler_instruction stop = {0};
    const struct handler_instruction *code;

    if (size < sizeof(*image))
        return refuse(error, HANDLER_NONE, "the image is too short", (int64_t)size);
    if (image->magic != HANDLER_IMAGE_MAGIC)
        return refuse(error, HANDLER_NONE, "this is no image of a program", image->magic);
    if (image->instructions == 0 || image->instructions > HANDLER_INSTRUCTIONS_MAX)
        return refuse(error, HANDLER_NONE, "the number of instructions must be 1 to 4096",
                      image->instructions);
    if (image->constants > HANDLER_CONSTANTS_MAX)
        return refuse(error, HANDLER_NONE, "constants may have 28672 bytes at most",
                      image->constants);
    if (image->functions > HANDLER_FUNCTIONS_MAX)
        return refuse(error, HANDLER_NONE, "64 functions may have a name at most",
                      image->functions);
    if (image->zero != 0)
        return refuse(error, HANDLER_NONE, "a reserved word of the image is not 0", image->zero);
    if (size != image_bytes(image->instructions, image->constants, image->functions))
        return refuse(error, HANDLER_NONE, "the image has another size than its head says",
                      (int64_t)size);
    code = image_code(image);
    if (memcmp(&code[0], &stop, sizeof(stop)) != 0 ||
        memcmp(&code[image->instructions + 1], &stop, sizeof(stop)) != 0)
        return refuse(error, HANDLER_NONE, "a stop beside the instructions is not 0", 0);
    return 0;
}

int image_check(const void *bytes, size_t size, struct image_error *error)
{
    const struct handler_image *image = bytes;
    struct program p = {.image = image, .error = error};
    int rc;

    rc = check_frame(image, size, error);
    if (rc != 0)
        return rc;
    p.code = image_code(image) + 1;
    p.count = image->instructions;
    rc = check_code(&p);
    if (rc == 0)
        rc = check_entries(&p, image->entry);
    return rc == 0 ? check_functions(&p, image_functions(image), image->functions) : rc;
}
