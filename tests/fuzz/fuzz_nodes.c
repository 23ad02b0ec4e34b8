/* Fuzzes the reader of lists of nodes, separated by commas and by lines. */
#include <stdlib.h>
#include <string.h>
#include "daemon/control/nodes/nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char separators[] = {',', '\n'};
    char *text = malloc(size + 1);
    char why[64];

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof(separators); i++) {
        struct node_list list = {0};

        (void)node_list_parse(&list, text, separators[i], why, sizeof(why));
        node_list_free(&list);
    }
    free(text);
    return 0;
}
