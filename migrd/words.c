// SPDX-License-Identifier: GPL-2.0
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool word_number(const char *word, uint64_t limit, uint32_t *n)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)*word))
		return false;
	errno = 0;
	value = strtoull(word, &end, word[1] == 'x' ? 16 : 10);
	*n = (uint32_t)value;
	return !errno && !*end && value < limit;
}
