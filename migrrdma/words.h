/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What may be asked of the process through its socket; README.md has the words.
 */
#ifndef MIGRRDMA_WORDS_H
#define MIGRRDMA_WORDS_H

enum {
	MOST_OF_A_LINE = 65536
};

/**
 * words_obey - do what a line says
 * @fd: where a line of JSON goes to, as the answer
 * @line: with its end; whatever somebody has sent. It is changed.
 */
void words_obey(int fd, char *line);

#endif
