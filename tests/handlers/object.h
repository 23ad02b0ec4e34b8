/* Object files of handlers, for tests: read, loaded, checked. */
#ifndef PWC_TESTS_HANDLERS_OBJECT_H
#define PWC_TESTS_HANDLERS_OBJECT_H

#include "clientlib/handlers/program.h"
#include "tests/handlers/bench.h"

/* The handlers of a file are called as their stages. */
extern const struct program_names object_names;

/* A whole file; the caller frees it. Ends the test where it can't be read. */
uint8_t *object_read(const char *path, size_t *size);
/* The file's program becomes the bench's image. 0, or the error of the loader or of the check. */
int object_load(struct bench *b, const char *path, struct program_error *error);

#endif
