// SPDX-License-Identifier: GPL-2.0
#include "gids.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CLASS
#define CLASS "/sys/class/infiniband" /* tests have another */
#endif

enum {
	MOST_PORTS = 255,
	FILE_BYTES = 384,
};

enum {
	OTHER_GID,
	THIS_GID,
	NO_FILE
};

/* its first line; false if there is no such file, and nothing where it cannot be read */
static bool read_line(const char *file, char *text, size_t bytes)
{
	ssize_t n;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, bytes - 1); /* fails where there is no GID */
	close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	return true;
}

static int compare(const char *file, const struct in6_addr *gid)
{
	char text[INET6_ADDRSTRLEN + 1];
	struct in6_addr is;

	if (!read_line(file, text, sizeof(text)))
		return NO_FILE;
	return inet_pton(AF_INET6, text, &is) == 1 &&
			       !memcmp(&is, gid, sizeof(is))
		       ? THIS_GID
		       : OTHER_GID;
}

/* Numbers of ports and of GIDs have no gaps. */
uint32_t gids_port(const char *device, const struct in6_addr *gid)
{
	int result = OTHER_GID, i = 1;
	char file[FILE_BYTES];

	for (uint32_t port = 1; i && port <= MOST_PORTS; port++) {
		i = -1;
		do {
			snprintf(file, sizeof(file),
				 CLASS "/%s/ports/%u/gids/%d", device, port,
				 ++i);
			result = compare(file, gid);
		} while (result == OTHER_GID);
		if (result == THIS_GID)
			return port;
	}
	return 0;
}

static size_t read_all(const char *device, uint32_t port, struct gid_entry *all)
{
	char file[FILE_BYTES], text[INET6_ADDRSTRLEN + 1];
	size_t n = 0;

	for (unsigned int i = 0; n < MOST_GIDS; i++) {
		snprintf(file, sizeof(file), CLASS "/%s/ports/%u/gids/%u",
			 device, port, i);
		if (!read_line(file, text, sizeof(text)))
			break;
		all[n] = (struct gid_entry){ .index = i };
		if (inet_pton(AF_INET6, text, &all[n].gid) != 1 ||
		    IN6_IS_ADDR_UNSPECIFIED(&all[n].gid))
			continue;
		snprintf(file, sizeof(file),
			 CLASS "/%s/ports/%u/gid_attrs/types/%u", device, port,
			 i);
		if (read_line(file, all[n].type, sizeof(all[n].type)))
			n++;
	}
	return n;
}

size_t gids_beside(const struct in6_addr *gid, struct gid_entry *all)
{
	DIR *devices = opendir(CLASS);
	struct dirent *d;
	size_t n = 0;

	while (devices && !n && (d = readdir(devices))) {
		uint32_t port = gids_port(d->d_name, gid);

		if (port)
			n = read_all(d->d_name, port, all);
	}
	if (devices)
		closedir(devices);
	return n;
}
