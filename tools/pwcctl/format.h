/* Numbers as people read them. Each writes at most TABLE_CELL_MAX characters. */
#ifndef PWCCTL_FORMAT_H
#define PWCCTL_FORMAT_H

#include <jansson.h>

enum format {
    FORMAT_PLAIN,   /* as it is */
    FORMAT_BYTES,   /* 4.0K, 1.5M: powers of 1024 */
    FORMAT_COUNT,   /* 12.3k, 4.5M: powers of 1000; exact below 10,000 */
    FORMAT_NS,      /* a duration: 850ns, 12.3us, 4.5s */
    FORMAT_SECONDS, /* a duration given in seconds */
    FORMAT_PERCENT, /* 12.3% */
};

void format_number(double value, enum format format, char *out);
/* "-" for null and for what is missing. */
void format_cell(const json_t *value, enum format format, char *out);

#endif
