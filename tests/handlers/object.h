/* Object files of handlers, for tests: reads, loads and checks them. Thread: one. */
#ifndef PWC_TESTS_HANDLERS_OBJECT_H
#define PWC_TESTS_HANDLERS_OBJECT_H

#include "clientlib/handlers/program.h"
#include "tests/handlers/bench.h"

/* In each file, the functions of the handlers have the names of their stages. */
extern const struct program_names object_names;

/* Reads a whole file; the caller frees it. Ends the test if the file cannot be read. */
uint8_t *object_read(const char *path, size_t *size);
/* Makes the file's program the bench's image. Returns 0, or the error of the loader or of the
 * check. */
int object_load(struct bench *b, const char *path, struct program_error *error);

#endif
