/* pwc-exporter: reads its options, and serves. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "tools/pwc-exporter/exporter.h"

static const char usage[] = "usage: pwc-exporter [--socket PATH] [--listen ADDRESS] [--clients]\n";

static const char help[] =
    "Serves the metrics of a running daemon to Prometheus.\n"
    "\n"
    "  --socket PATH     the daemon's socket; default: $PWC_SOCKET, then /run/pwcd/pwcd.sock\n"
    "  --listen ADDRESS  a port of 127.0.0.1, or host:port; port 0 is any that is free\n"
    "                    (default: 9464)\n"
    "  --clients         serve rows of single clients, too: they name users and jobs\n"
    "  --help, --version\n";

static int parse(struct exporter_options *o, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"socket", required_argument, NULL, 's'}, {"listen", required_argument, NULL, 'l'},
        {"clients", no_argument, NULL, 'c'},      {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},      {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        switch (option) {
        case 's':
            o->socket = optarg;
            break;
        case 'l':
            o->listen = optarg;
            break;
        case 'c':
            o->clients = true;
            break;
        case 'h':
            printf("%s\n%s", usage, help);
            return 1;
        case 'v':
            printf("pwc-exporter %s\n", PWC_VERSION);
            return 1;
        default: /* getopt has said what is wrong */
            fputs(usage, stderr);
            return -1;
        }
    if (optind == argc)
        return 0;
    fprintf(stderr, "pwc-exporter: \"%s\" is no option\n%s", argv[optind], usage);
    return -1;
}

int main(int argc, char **argv)
{
    const char *named = getenv("PWC_SOCKET");
    struct exporter_options options = {.socket = named && *named ? named : "/run/pwcd/pwcd.sock",
                                       .listen = "9464"};
    struct exporter_address at;
    int rc = parse(&options, argc, argv);

    if (rc != 0)
        return rc > 0 ? 0 : 2;
    if (strlen(options.socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        fprintf(stderr, "pwc-exporter: socket \"%s\": the path is too long\n", options.socket);
        return 2;
    }
    if (!exporter_address_parse(options.listen, &at)) {
        fprintf(stderr,
                "pwc-exporter: listen \"%s\": give a port (0: any that is free), or host:port\n",
                options.listen);
        return 2;
    }
    return exporter_serve(&options, &at) < 0;
}
