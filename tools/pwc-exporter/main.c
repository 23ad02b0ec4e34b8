/* pwc-exporter: reads its options, and serves. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "tools/arguments.h"
#include "tools/pwc-exporter/exporter.h"

#define AT(member) offsetof(struct exporter_options, member)

static const struct argument rows[] = {
    {"socket", "PATH", "the daemon's socket; default: $PWC_SOCKET, then /run/pwcd/pwcd.sock",
     AT(socket)},
    {"listen", "ADDRESS",
     "a port of 127.0.0.1, or host:port; port 0 is any that is free\n(default: 9464)", AT(listen)},
    {"clients", NULL, "serve rows of single clients, too: they name users and jobs", AT(clients)},
    {0},
};

static const struct command_line line = {
    .tool = "pwc-exporter",
    .usage = "[OPTION]...",
    .about = "Serves the metrics of a running daemon to Prometheus.\n",
    .letters = "",
    .rows = rows,
};

int main(int argc, char **argv)
{
    const char *named = getenv("PWC_SOCKET");
    struct exporter_options options = {.socket = named && *named ? named : "/run/pwcd/pwcd.sock",
                                       .listen = "9464"};
    struct exporter_address at;
    int rc = arguments_parse(&line, &options, argc, argv);

    if (rc == 0 && optind < argc)
        rc = arguments_refuse(line.tool, "\"%s\" is no option", argv[optind]);
    if (rc == 0 && strlen(options.socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        rc = arguments_refuse(line.tool, "socket \"%s\": the path is too long", options.socket);
    if (rc == 0 && !exporter_address_parse(options.listen, &at))
        rc = arguments_refuse(line.tool,
                              "listen \"%s\": give a port (0: any that is free), or host:port",
                              options.listen);
    if (rc != 0)
        return rc > 0 ? 0 : 2;
    return exporter_serve(&options, &at) < 0;
}
