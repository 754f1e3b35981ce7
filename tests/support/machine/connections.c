/* Preloaded into a process: writes to the file $CONNECTIONS where it and its children connect or send to, and which
 * names they look up, a line each. Sockets of this machine's file system are left out. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void note(const char *how, const char *where) {
    const char *path = getenv("CONNECTIONS");
    char line[512];
    int file, length = snprintf(line, sizeof line, "%s %s\n", how, where);
    if (!path || (file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600)) < 0) return;
    if (write(file, line, length) < 0) abort();
    close(file);
}

static void note_address(const char *how, const struct sockaddr *to) {
    char where[INET6_ADDRSTRLEN] = "?";
    if (!to || (to->sa_family != AF_INET && to->sa_family != AF_INET6)) return;
    if (to->sa_family == AF_INET) inet_ntop(AF_INET, &((const struct sockaddr_in *)to)->sin_addr, where, sizeof where);
    else inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)to)->sin6_addr, where, sizeof where);
    note(how, where);
}

int connect(int fd, const struct sockaddr *to, socklen_t size) {
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    note_address("connect", to);
    return real(fd, to, size);
}

ssize_t sendto(int fd, const void *what, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
    note_address("send", to);
    return real(fd, what, size, flags, to, length);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node) note("name", node);
    return real(node, service, hints, found);
}
