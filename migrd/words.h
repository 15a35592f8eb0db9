/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What others say, word by word
 */
#ifndef MIGRD_WORDS_H
#define MIGRD_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/* below @limit; decimal or, with 0x, hexadecimal */
bool word_number(const char *word, uint64_t limit, uint32_t *n);

#endif
