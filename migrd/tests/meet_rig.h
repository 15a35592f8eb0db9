/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This process is one under the layer, and calls its daemon
 */
#ifndef MEET_RIG_H
#define MEET_RIG_H

#include "layer_rig.h"

#define AT_GID "::ffff:10.10.0.2"
#define MEET "meet 17 " AT_GID " 27 " AT_GID " 3\n"

extern struct fake peer;
extern int own; /* our socket */

/* a daemon, the peer, and us in the container "box": QPs 17 are ours, 27 and 37 its */
void meet_begin(void);

/* Nobody has to accept what is connected: the kernel says whose it is. */
void come_under_the_layer(const char *container);
int call(void);
/* what it says until its end, but that it is to be waited for */
const char *answer_of(int fd);
/* as the library does: again, if there is no place */
const char *meets(const char *text);

#define SAYS(text, begin)                                                    \
	do {                                                                 \
		const char *a_ = meets(text);                                \
		CHECK(!strncmp(a_, begin, strlen(begin)), "%.80s: %s", text, \
		      a_);                                                   \
	} while (0)

#endif
