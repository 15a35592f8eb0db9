// SPDX-License-Identifier: GPL-2.0
/*
 * migr-announce INTERFACE ADDRESS... - tell neighbours that an address lives here now
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"

static const char usage[] = "usage: migr-announce INTERFACE ADDRESS...\n"
			    "       migr-announce -h\n";

struct address {
	bool is_ipv6;
	uint8_t bytes[16];
};

static bool parse(const char *text, struct address *a)
{
	a->is_ipv6 = strchr(text, ':');
	return inet_pton(a->is_ipv6 ? AF_INET6 : AF_INET, text, a->bytes) == 1;
}

static int open_link(const char *name, uint8_t mac[6])
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	struct ifreq request = { 0 };
	int fd;

	if (!*name || strlen(name) >= sizeof(request.ifr_name))
		errx(2, "'%s' is no name of an interface", name);
	memcpy(request.ifr_name, name, strlen(name));
	/* protocol 0: nothing is received */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		err(1, "%s", name);
	if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		errx(1, "%s is no Ethernet", name);
	memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	if (ioctl(fd, SIOCGIFINDEX, &request))
		err(1, "%s", name);
	to.sll_ifindex = request.ifr_ifindex;
	if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "%s", name);
	return fd;
}

static void say(int fd, const char *who, const uint8_t *frame, size_t bytes)
{
	if (write(fd, frame, bytes) != (ssize_t)bytes)
		err(1, "%s", who);
}

static void announce(int fd, const char *who, const uint8_t *mac,
		     const struct address *a)
{
	uint8_t frame[FRAME_NA];

	if (a->is_ipv6) {
		frame_na(frame, mac, a->bytes);
		say(fd, who, frame, FRAME_NA);
		return;
	}
	for (int is_reply = 0; is_reply < 2; is_reply++) {
		frame_arp(frame, mac, a->bytes, is_reply);
		say(fd, who, frame, FRAME_ARP);
	}
}

int main(int argc, char **argv)
{
	struct address a;
	uint8_t mac[6];
	int fd;

	if (argc == 2 && !strcmp(argv[1], "-h"))
		return fputs(usage, stdout) < 0;
	if (argc < 3) {
		fputs(usage, stderr);
		return 2;
	}
	/* all of them, before anything is said */
	for (int i = 2; i < argc; i++)
		if (!parse(argv[i], &a))
			errx(2, "'%s' is no address", argv[i]);
	fd = open_link(argv[1], mac);
	for (int i = 2; i < argc; i++)
		if (parse(argv[i], &a))
			announce(fd, argv[i], mac, &a);
	return 0;
}
