/* Owns the distance between two words (nearest.h). */
#include "daemon/control/start/nearest.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned nearest_distance(const char *a, const char *b)
{
    unsigned rows[3][NEAREST_WORD_MAX + 1] = {{0}}; /* by i modulo 3 */
    size_t a_length = strlen(a), b_length = strlen(b);

    if (a_length > NEAREST_WORD_MAX || b_length > NEAREST_WORD_MAX)
        return NEAREST_WORD_MAX + 1;
    for (unsigned j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_length; i++) {
        const unsigned *before = rows[(i + 1) % 3], *last = rows[(i - 1) % 3];
        unsigned *row = rows[i % 3];

        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void nearest_try(const char *word, const char *candidate, const char **nearest, unsigned *distance)
{
    unsigned found = nearest_distance(word, candidate);
    unsigned enough = (unsigned)strlen(word) / 3;

    if (found <= (enough > 0 ? enough : 1) && (!*nearest || found < *distance)) {
        *nearest = candidate;
        *distance = found;
    }
}
