// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>

/* Of a fault of its own a thread does not hear while it waits. */
static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
	       number == SIGILL || number == SIGTRAP || number == SIGSYS;
}

/* Has the program no handler that interrupts system calls? */
static bool all_restart(void)
{
	struct sigaction a;

	for (int number = 1; number < NSIG; number++)
		if (!is_fault(number) && !sigaction(number, NULL, &a) &&
		    a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN &&
		    !(a.sa_flags & SA_RESTART))
			return false;
	return true;
}

/*
 * No system call that waits at several descriptors is restarted by SA_RESTART, and who
 * got EINTR cannot tell which handler it was. So that is returned if it may have been one
 * without. (The kernel can be asked to poll, by io_submit(2), and to end a read(2), which
 * is restarted; but of that CRIU knows nothing, and nobody would be woken after a move.)
 */
int wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	/* which goes on after a move, where a poll would end with EINTR */
	while (ppoll(&p, 1, NULL, NULL) < 0)
		if (errno != EINTR || !all_restart())
			return errno;
	return 0;
}
