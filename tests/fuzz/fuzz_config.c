/* Fuzzes the reader of configuration files, and of the users that a file allows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/control/clients/admission.h"
#include "daemon/control/start/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int file = memfd_create("config", MFD_CLOEXEC);
    struct admission admission;
    struct config config;
    char path[64], why[64];

    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    config_init(&config);
    if (config_load(&config, path, why, sizeof(why)) == 0) {
        for (const struct config_key *key = config_keys(); key->name; key++) {
            char value[CONFIG_TEXT_MAX];

            config_text(&config, key, value, sizeof(value));
        }
        if (admission_open(&admission, config.allow_users, config.allow_groups,
                           config.inspect_groups, why, sizeof(why)) == 0)
            admission_close(&admission);
    }
    config_free(&config);
    close(file);
    return 0;
}
