/* Owns nothing: builds images from ELF files (program.h). Thread: any. */
#include "clientlib/handlers/program.h"

#include <errno.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTIONS_MAX = 256,
    RELOCATION_64 = 1,    /* R_BPF_64_64: an address in an instruction of 16 bytes */
    RELOCATION_CALL = 10, /* R_BPF_64_32 */
};

enum section_use {
    SECTION_OTHER = 0,
    SECTION_CODE = 1,
    SECTION_CONSTANTS = 2,
    SECTION_WRITABLE = 3,
};

struct section {
    Elf_Data *data;
    GElf_Shdr header;
    const char *name;
    enum section_use use;
    uint64_t place; /* for code: number of its first instruction; for constants: offset of its first
                       byte */
};

struct program {
    Elf *elf;
    struct section sections[SECTIONS_MAX];
    size_t count;
    Elf_Data *symbols; /* NULL: none */
    size_t symbol_count, symbol_names;
    uint64_t instructions, constants;
    struct handler_image *image;
    struct handler_instruction *code;
    struct program_error *error;
};

static int refuse(struct program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct program *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->error->text, sizeof(p->error->text), format, args);
    va_end(args);
    return -ENOEXEC;
}

/* ---- sections ---------------------------------------------------------------------------------
 */

static enum section_use use_of(const struct section *s)
{
    if (!(s->header.sh_flags & SHF_ALLOC) || s->header.sh_size == 0)
        return SECTION_OTHER;
    if (s->header.sh_flags & SHF_EXECINSTR)
        return SECTION_CODE;
    if (s->header.sh_flags & SHF_WRITE || s->header.sh_type == SHT_NOBITS)
        return SECTION_WRITABLE;
    return s->header.sh_type == SHT_PROGBITS ? SECTION_CONSTANTS : SECTION_OTHER;
}

static uint64_t aligned_to(uint64_t at, uint64_t alignment)
{
    return alignment > 1 ? (at + alignment - 1) / alignment * alignment : at;
}

/* Gives the section its place in the image. */
static int place_section(struct program *p, struct section *s)
{
    uint64_t size = s->header.sh_size;

    if (s->use == SECTION_OTHER)
        return 0;
    if (s->use == SECTION_WRITABLE)
        return refuse(p, "section %.40s: handlers have no writable globals; use the state",
                      s->name);
    s->data = elf_rawdata(elf_getscn(p->elf, (size_t)(s - p->sections)), NULL);
    if (!s->data || !s->data->d_buf || s->data->d_size != size)
        return refuse(p, "section %.40s is cut off", s->name);
    if (s->use == SECTION_CODE) {
        if (size % 8 != 0)
            return refuse(p, "section %.40s: its size is no multiple of 8", s->name);
        s->place = p->instructions;
        p->instructions += size / 8;
        if (p->instructions > HANDLER_INSTRUCTIONS_MAX)
            return refuse(p, "the program has more than %d instructions", HANDLER_INSTRUCTIONS_MAX);
        return 0;
    }
    if (s->header.sh_addralign > 4096)
        return refuse(p, "section %.40s: aligned to more than 4096", s->name);
    s->place = aligned_to(p->constants, s->header.sh_addralign);
    if (size > HANDLER_CONSTANTS_MAX || s->place + size > HANDLER_CONSTANTS_MAX)
        return refuse(p, "the program has more than %d bytes of constants", HANDLER_CONSTANTS_MAX);
    p->constants = s->place + size;
    return 0;
}

static int read_symbols(struct program *p, const struct section *s, size_t index)
{
    if (s->header.sh_type != SHT_SYMTAB)
        return 0;
    if (p->symbols)
        return refuse(p, "the file has two tables of symbols");
    p->symbols = elf_getdata(elf_getscn(p->elf, index), NULL);
    if (!p->symbols || s->header.sh_entsize != sizeof(Elf64_Sym))
        return refuse(p, "the table of symbols can't be read");
    p->symbol_count = p->symbols->d_size / sizeof(Elf64_Sym);
    p->symbol_names = s->header.sh_link;
    return 0;
}

static int read_sections(struct program *p)
{
    size_t count, names;
    int rc = 0;

    if (elf_getshdrnum(p->elf, &count) != 0 || elf_getshdrstrndx(p->elf, &names) != 0 || count == 0)
        return refuse(p, "the file has no sections");
    if (count > SECTIONS_MAX)
        return refuse(p, "the file has more than %d sections", SECTIONS_MAX);
    p->count = count;
    for (size_t i = 1; i < count && rc == 0; i++) {
        struct section *s = &p->sections[i];
        Elf_Scn *at = elf_getscn(p->elf, i);

        if (!at || !gelf_getshdr(at, &s->header))
            return refuse(p, "section %zu can't be read", i);
        s->name = elf_strptr(p->elf, names, s->header.sh_name);
        if (!s->name)
            return refuse(p, "section %zu has no name", i);
        s->use = use_of(s);
        rc = place_section(p, s);
        if (rc == 0)
            rc = read_symbols(p, s, i);
    }
    if (rc == 0 && p->instructions == 0)
        rc = refuse(p, "the file has no instructions: was it compiled with -target bpf?");
    return rc;
}

/* ---- the image --------------------------------------------------------------------------------
 */

static int make_image(struct program *p)
{
    uint8_t *constants;

    p->image = calloc(1, HANDLER_IMAGE_MAX);
    if (!p->image)
        return -ENOMEM;
    *p->image = (struct handler_image){
        .magic = HANDLER_IMAGE_MAGIC,
        .instructions = (uint32_t)p->instructions,
        .constants = (uint32_t)p->constants,
        .entry = {HANDLER_NONE, HANDLER_NONE, HANDLER_NONE},
    };
    p->code = (struct handler_instruction *)(p->image + 1) + 1;
    constants = (uint8_t *)p->image + image_constants_at((uint32_t)p->instructions);
    for (size_t i = 1; i < p->count; i++) {
        const struct section *s = &p->sections[i];

        if (s->use == SECTION_CODE)
            memcpy(&p->code[s->place], s->data->d_buf, s->header.sh_size);
        else if (s->use == SECTION_CONSTANTS)
            memcpy(constants + s->place, s->data->d_buf, s->header.sh_size);
    }
    return 0;
}

/* ---- symbols ----------------------------------------------------------------------------------
 */

static const char *name_of(const struct program *p, const GElf_Sym *symbol)
{
    const char *name = elf_strptr(p->elf, p->symbol_names, symbol->st_name);

    if (GELF_ST_TYPE(symbol->st_info) == STT_SECTION && symbol->st_shndx < p->count &&
        symbol->st_shndx > 0)
        name = p->sections[symbol->st_shndx].name;
    return name ? name : "?";
}

/* The section of a symbol; NULL: it has none, or one of another use. */
static const struct section *section_of(const struct program *p, const GElf_Sym *symbol,
                                        enum section_use use)
{
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= p->count)
        return NULL;
    return p->sections[symbol->st_shndx].use == use ? &p->sections[symbol->st_shndx] : NULL;
}

static int find_handlers(struct program *p, const struct program_names *names)
{
    unsigned found = 0;

    for (size_t i = 0; i < p->symbol_count; i++) {
        const struct section *s;
        GElf_Sym symbol;

        if (!gelf_getsym(p->symbols, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
            continue;
        s = section_of(p, &symbol, SECTION_CODE);
        for (unsigned stage = 0; stage < HANDLER_STAGES; stage++) {
            const char *name = names->handler[stage];

            if (!s || !name || strcmp(name_of(p, &symbol), name) != 0)
                continue;
            if (symbol.st_value % 8 != 0 || symbol.st_value >= s->header.sh_size)
                return refuse(p, "function %.40s starts at no instruction", name);
            p->image->entry[stage] = (uint32_t)(s->place + symbol.st_value / 8);
            found++;
        }
    }
    for (unsigned stage = 0; stage < HANDLER_STAGES; stage++)
        if (names->handler[stage] && p->image->entry[stage] == HANDLER_NONE && found == 0)
            return refuse(p, "there is no function %.40s in the file", names->handler[stage]);
    return found > 0 ? 0 : refuse(p, "no function is named as a handler");
}

static int by_place(const void *a, const void *b)
{
    uint32_t one = ((const struct handler_function *)a)->place;
    uint32_t other = ((const struct handler_function *)b)->place;

    return (one > other) - (one < other);
}

/* Copies a name in the form that an image allows: cut to length, with other characters replaced. */
static void take_name(char to[HANDLER_NAME_MAX], const char *name)
{
    for (size_t i = 0; i < HANDLER_NAME_MAX - 1 && name[i] != 0; i++) {
        bool plain = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                     (name[i] >= '0' && name[i] <= '9') || name[i] == '.' || name[i] == '$';

        to[i] = name[i] == '_' || plain ? name[i] : '_';
    }
}

/* Puts the names of functions into the image, as many as fit. Returns how many. */
static uint32_t name_functions(struct program *p, struct handler_function *functions)
{
    uint32_t found = 0, kept = 0;

    for (size_t i = 0; i < p->symbol_count && found < HANDLER_FUNCTIONS_MAX; i++) {
        const struct section *s;
        GElf_Sym symbol;

        if (!gelf_getsym(p->symbols, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
            continue;
        s = section_of(p, &symbol, SECTION_CODE);
        if (!s || symbol.st_value % 8 != 0 || symbol.st_value >= s->header.sh_size ||
            name_of(p, &symbol)[0] == 0)
            continue;
        functions[found].place = (uint32_t)(s->place + symbol.st_value / 8);
        take_name(functions[found++].name, name_of(p, &symbol));
    }
    qsort(functions, found, sizeof(*functions), by_place);
    for (uint32_t i = 0; i < found; i++) /* one name for each place */
        if (kept == 0 || functions[i].place != functions[kept - 1].place)
            functions[kept++] = functions[i];
    memset(&functions[kept], 0, (found - kept) * sizeof(*functions));
    return kept;
}

/* ---- relocations ------------------------------------------------------------------------------
 */

/* Relocates a call of a function: imm becomes the distance to the function. */
static int resolve_call(struct program *p, uint64_t place, const GElf_Sym *symbol)
{
    const struct section *s = section_of(p, symbol, SECTION_CODE);
    struct handler_instruction *in = &p->code[place];
    int64_t to;

    if (!s)
        return refuse(p, "instruction %llu calls %.40s, which is not in the file",
                      (unsigned long long)place, name_of(p, symbol));
    if (in->opcode != CODE_DO_CALL || code_src(in) != CODE_CALL_LOCAL)
        return refuse(p, "instruction %llu names the function %.40s, but does not call it",
                      (unsigned long long)place, name_of(p, symbol));
    /* Before relocation imm is the distance from the symbol, less 1. */
    if (symbol->st_value % 8 != 0 || symbol->st_value / 8 >= p->instructions)
        return refuse(p, "the function %.40s begins at byte %llu, where no instruction does",
                      name_of(p, symbol), (unsigned long long)symbol->st_value);
    to = (int64_t)s->place + (int64_t)(symbol->st_value / 8) + in->imm + 1;
    if (to < 0 || to >= (int64_t)p->instructions)
        return refuse(p, "instruction %llu calls a place outside the program",
                      (unsigned long long)place);
    in->imm = (int32_t)(to - (int64_t)place - 1);
    return 0;
}

/* Relocates the address of a constant: the number becomes an address of window 7. */
static int resolve_address(struct program *p, uint64_t place, const GElf_Sym *symbol)
{
    const struct section *s = section_of(p, symbol, SECTION_CONSTANTS);
    struct handler_instruction *in = &p->code[place];
    uint64_t offset, address;

    if (!s && section_of(p, symbol, SECTION_CODE))
        return refuse(p, "instruction %llu takes the address of the function %.40s: handlers can't",
                      (unsigned long long)place, name_of(p, symbol));
    if (!s)
        return refuse(p, "instruction %llu uses %.40s, which is not in the file",
                      (unsigned long long)place, name_of(p, symbol));
    if (in->opcode != CODE_LD_DW || place + 1 >= p->instructions)
        return refuse(p, "instruction %llu uses %.40s, but is no load of an address",
                      (unsigned long long)place, name_of(p, symbol));
    offset = s->place + symbol->st_value + (uint32_t)in[0].imm;
    if (symbol->st_value > s->header.sh_size || offset > p->constants)
        return refuse(p, "instruction %llu uses an address past %.40s", (unsigned long long)place,
                      name_of(p, symbol));
    address = handler_address(HANDLER_CONSTANTS, offset);
    in[0].imm = (int32_t)(uint32_t)address;
    in[1].imm = (int32_t)(uint32_t)(address >> 32);
    return 0;
}

static int resolve(struct program *p, const struct section *in, const GElf_Rel *rel)
{
    uint64_t place = in->place + rel->r_offset / 8;
    GElf_Sym symbol;

    if (rel->r_offset % 8 != 0 || rel->r_offset >= in->header.sh_size)
        return refuse(p, "a relocation of section %.40s is outside of it", in->name);
    if (!p->symbols || GELF_R_SYM(rel->r_info) >= p->symbol_count ||
        !gelf_getsym(p->symbols, (int)GELF_R_SYM(rel->r_info), &symbol))
        return refuse(p, "a relocation of section %.40s has no symbol", in->name);
    switch (GELF_R_TYPE(rel->r_info)) {
    case RELOCATION_CALL:
        return resolve_call(p, place, &symbol);
    case RELOCATION_64:
        return resolve_address(p, place, &symbol);
    default:
        return refuse(p, "instruction %llu: a relocation of the unknown type %llu",
                      (unsigned long long)place, (unsigned long long)GELF_R_TYPE(rel->r_info));
    }
}

static int resolve_section(struct program *p, size_t index)
{
    const struct section *s = &p->sections[index], *in;
    Elf_Data *data;
    int rc = 0;

    if (s->header.sh_type != SHT_REL && s->header.sh_type != SHT_RELA)
        return 0;
    if (s->header.sh_info == 0 || s->header.sh_info >= p->count)
        return refuse(p, "section %.40s is of no section", s->name);
    in = &p->sections[s->header.sh_info];
    if (in->use == SECTION_CONSTANTS)
        return refuse(p,
                      "section %.40s: constants that hold addresses (a table of pointers or of "
                      "jumps) are not supported",
                      in->name);
    if (in->use != SECTION_CODE)
        return 0;
    if (s->header.sh_type == SHT_RELA || s->header.sh_entsize != sizeof(Elf64_Rel))
        return refuse(p, "section %.40s: relocations of an unknown form", s->name);
    data = elf_getdata(elf_getscn(p->elf, index), NULL);
    if (!data)
        return refuse(p, "section %.40s can't be read", s->name);
    for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rel) && rc == 0; i++) {
        GElf_Rel rel;

        if (!gelf_getrel(data, (int)i, &rel))
            return refuse(p, "section %.40s can't be read", s->name);
        rc = resolve(p, in, &rel);
    }
    return rc;
}

/* ---- all --------------------------------------------------------------------------------------
 */

static int check_head(struct program *p)
{
    GElf_Ehdr head;

    if (elf_kind(p->elf) != ELF_K_ELF || gelf_getclass(p->elf) != ELFCLASS64 ||
        !gelf_getehdr(p->elf, &head))
        return refuse(p, "this is no ELF file of 64 bits");
    if (head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_BPF)
        return refuse(p, "the file is not for bpf: compile it with clang -target bpf");
    if (head.e_type != ET_REL)
        return refuse(p, "the file is no object file: compile it with -c");
    return 0;
}

static int build(struct program *p, const struct program_names *names, size_t *bytes)
{
    int rc = check_head(p);

    if (rc == 0)
        rc = read_sections(p);
    if (rc == 0)
        rc = make_image(p);
    if (rc == 0)
        rc = find_handlers(p, names);
    for (size_t i = 1; i < p->count && rc == 0; i++)
        rc = resolve_section(p, i);
    if (rc == 0) {
        struct handler_image *image = p->image;

        image->functions = name_functions(
            p,
            (struct handler_function *)((uint8_t *)image +
                                        image_functions_at(image->instructions, image->constants)));
        *bytes = image_bytes(image->instructions, image->constants, image->functions);
    }
    return rc;
}

int image_of_elf(const void *elf, size_t size, const struct program_names *names,
                 struct handler_image **image, size_t *bytes, struct program_error *error)
{
    struct program *p = calloc(1, sizeof(*p));
    char *copy = malloc(size > 0 ? size : 1);
    int rc = -ENOMEM;

    if (!p || !copy)
        goto out;
    p->error = error;
    memcpy(copy, elf, size); /* libelf may write to what it reads */
    elf_version(EV_CURRENT);
    p->elf = elf_memory(copy, size);
    rc = p->elf ? build(p, names, bytes) : refuse(p, "this is no ELF file");
    if (p->elf)
        elf_end(p->elf);
    if (rc == 0)
        *image = p->image;
    else
        free(p->image);
out:
    free(copy);
    free(p);
    return rc;
}
