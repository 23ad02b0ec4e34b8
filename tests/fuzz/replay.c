/*
 * Runs a fuzzer's target without a fuzzer, on each file of the given folders: so the kept inputs
 * are part of every build's tests.
 *
 *     replay_NAME FOLDER...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (1u << 20)

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Runs the target on an exact copy of the file, so that a read past the input's end is a read past
 * the allocation. */
static int replay(const char *folder, const char *name)
{
    static uint8_t bytes[INPUT_MAX];
    char path[4096];
    uint8_t *input;
    size_t size;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file) {
        perror(path);
        return 1;
    }
    size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    input = malloc(size > 0 ? size : 1);
    if (!input)
        return 1;
    for (size_t i = 0; i < size; i++)
        input[i] = bytes[i];
    (void)LLVMFuzzerTestOneInput(input, size);
    free(input);
    return 0;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;

    if (LLVMFuzzerInitialize)
        (void)LLVMFuzzerInitialize(&argc, &argv);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        const struct dirent *entry;
        DIR *folder = opendir(argv[i]);

        if (!folder) {
            perror(argv[i]);
            return 1;
        }
        while ((entry = readdir(folder)) != NULL)
            if (entry->d_name[0] != '.') {
                failed += replay(argv[i], entry->d_name);
                count++;
            }
        closedir(folder);
    }
    printf("%d inputs\n", count);
    return failed > 0 || count == 0;
}
