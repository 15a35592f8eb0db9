// SPDX-License-Identifier: GPL-2.0
/*
 * If there is a file "signal" in the working folder, SIGHUP comes with the next connection.
 * A socket that is bound is not for everybody for a while.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int accept4(int fd, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	int (*real)(int, struct sockaddr *, socklen_t *, int) =
		dlsym(RTLD_NEXT, "accept4");

	if (!unlink("signal"))
		kill(getpid(), SIGHUP);
	return real(fd, addr, bytes, flags);
}

int chmod(const char *path, mode_t mode)
{
	int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "chmod");

	usleep(100000);
	return real(path, mode);
}
