// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "spares.h"

#include <errno.h>
#include <stdlib.h>

bool spares_have_room(struct spares *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	void **of;

	if (s->n < s->room)
		return true;
	of = reallocarray(s->of, room, sizeof(*of));
	if (of) {
		s->of = of;
		s->room = room;
	}
	return of;
}

void spares_drop(struct spares *s, int (*destroy)(void *))
{
	int err = errno;

	while (s->n)
		destroy(s->of[--s->n]);
	free(s->of);
	s->of = NULL;
	s->room = 0;
	errno = err;
}
