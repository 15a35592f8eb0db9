// SPDX-License-Identifier: GPL-2.0
/*
 * If there is a file "signal" in the working folder, SIGHUP comes with the next connection.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

int accept4(int fd, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	int (*real)(int, struct sockaddr *, socklen_t *, int) =
		dlsym(RTLD_NEXT, "accept4");

	if (!unlink("signal"))
		kill(getpid(), SIGHUP);
	return real(fd, addr, bytes, flags);
}
