// SPDX-License-Identifier: GPL-2.0
/* mlx5soft_ctl: a word with a running mlx5soft (-c SOCKET) */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"

#define PATIENCE 20 /* s */

static const char help[] =
	"Usage: mlx5soft_ctl SOCKET REQUEST\n"
	"Ask a running mlx5soft, which was started with -c SOCKET, or tell it:\n"
	"\n"
	"  limit                            what is sent: at which rate it leaves\n"
	"                                   (bit/s; 0: any), how much later it\n"
	"                                   arrives, and what is on its way\n"
	"  limit [rate RATE] [delay TIME]   from now on; what is on its way already\n"
	"                                   begins anew. Not said: none\n"
	"  limit off\n"
	"  commands [TIME]                  how long each command takes, one after the\n"
	"                                   other, as with firmware; up to 1s\n"
	"  commands off                     as long as it takes, which is the default\n"
	"  counters [reset]                 commands of the driver since the start\n"
	"                                   or the last reset, by name, with the ns\n"
	"                                   that they took; QPs; what they have in\n"
	"                                   flight (sent and not acknowledged, asked\n"
	"                                   for and not there) and have begun and not\n"
	"                                   sent; the limit\n"
	"\n"
	"The answer is a line of JSON: \"error\" says why not, and then the exit code\n"
	"is 1. Bytes of the limit are of the link: with FCS, preamble and gap; those\n"
	"in flight are payload.\n";

static int die(const char *what)
{
	fprintf(stderr, "mlx5soft_ctl: %s: %s\n", what,
		errno == EAGAIN ? "no answer" : strerror(errno));
	return 1;
}

/* the words with a space between them; 0: they are too long */
static size_t join(char **words, char request[CONTROL_REQUEST])
{
	size_t len = 0, n;

	for (; *words; words++) {
		n = strlen(*words);
		if (len + n + 1 > CONTROL_REQUEST)
			return 0;
		if (len)
			request[len++] = ' ';
		memcpy(request + len, *words, n);
		len += n;
	}
	return len;
}

int main(int argc, char **argv)
{
	static const char refused[] = "{\"error\"";
	const struct timeval patience = { .tv_sec = PATIENCE };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char request[CONTROL_REQUEST], answer[CONTROL_ANSWER];
	size_t len;
	ssize_t n;
	int fd;

	if (argc == 2 &&
	    (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	len = argc > 2 ? join(argv + 2, request) : 0;
	if (!len || strlen(argv[1]) >= sizeof(addr.sun_path)) {
		fputs(help, stderr);
		return 2;
	}
	strcpy(addr.sun_path, argv[1]);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    send(fd, request, len, MSG_NOSIGNAL) < 0)
		return die(argv[1]);
	n = recv(fd, answer, sizeof(answer), 0);
	if (n <= 0) {
		errno = n ? errno : ECONNRESET;
		return die(argv[1]);
	}
	fwrite(answer, n, 1, stdout);
	return n >= (ssize_t)sizeof(refused) - 1 &&
	       !memcmp(answer, refused, sizeof(refused) - 1);
}
