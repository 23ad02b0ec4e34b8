/* Owns the places where the daemon's program is looked for (find_pwcd.h). */
#include "tools/find_pwcd.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void find_pwcd(char *out, size_t size)
{
    /* The places are those of an installation and of a build folder. */
    static const char *const beside[] = {"pwcd", "../../daemon/pwcd"};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length > 0) {
        self[length] = '\0';
        *strrchr(self, '/') = '\0';
        for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
            int wanted = snprintf(out, size, "%s/%s", self, beside[i]);
            if (wanted > 0 && (size_t)wanted < size && access(out, X_OK) == 0)
                return;
        }
    }
    snprintf(out, size, "pwcd");
}
