// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The sample image as a file, for tests of what reads files.
 *
 *	sample_image >FILE
 */

#include <stdio.h>

#include "image_builder.h"

int main(void)
{
	struct builder b;
	size_t n;

	builder_sample(&b);
	n = fwrite(b.data, 1, b.length, stdout);
	n -= b.length;
	builder_free(&b);
	return n || fflush(stdout);
}
