// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "sign.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int sign = -1;

int sign_show(void)
{
	int err = 0;

	if (sign >= 0)
		return 0;
	sign = memfd_create("libmigrrdma:suspended", MFD_CLOEXEC);
	if (sign < 0)
		return errno;
	if (dprintf(sign, "%d\n", getpid()) < 0) {
		err = errno;
		sign_hide();
	}
	return err;
}

void sign_hide(void)
{
	if (sign >= 0)
		close(sign);
	sign = -1;
}
