/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where CRIU stops in the middle of a move, until it is decided who runs the container: at
 * the source when all is dumped, at the target when all is restored and nothing resumed.
 * (What decides is states.h, at the other side of the pipes "says" and "go" of a folder.)
 */
#ifndef MIGRCTL_GATE_H
#define MIGRCTL_GATE_H

#include <stdbool.h>

/**
 * gate_wait - tell how far it is, and wait for a word
 * @folder: of the move
 * @says: "held", "restored": how far it is
 * @word: what is to be heard, to go on
 * @granted: what it means that nobody is left to give a word, after the target was granted the
 *           container, as the file "state" says: true, that it may go on, or false, that
 *           somebody else will come, and is waited for
 * @other: who is held, at the other end of a socket; -1: that is the caller
 *
 * Return: whether to go on: not if there is another word, or nobody left to give one, or who is
 * held has ended, or it cannot be waited for
 */
bool gate_wait(const char *folder, const char *says, const char *word,
	       bool granted, int other);

/* Was the container granted to the target, as the file "state" says? */
bool gate_is_granted(const char *folder);

#endif
