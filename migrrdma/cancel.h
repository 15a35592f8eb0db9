/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Who is cancelled while he waits within the layer would leave its locks behind. Waits
 * for events are points where threads are cancelled, as those of libibverbs.
 */
#ifndef MIGRRDMA_CANCEL_H
#define MIGRRDMA_CANCEL_H

#include <pthread.h>

/** cancel_off - not from now on. Return: for cancel_back() */
static inline int cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_back(int before)
{
	pthread_setcancelstate(before, NULL);
}

#endif
