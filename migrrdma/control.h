/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_CONTROL_H
#define MIGRRDMA_CONTROL_H

#include <stdbool.h>

/**
 * control_start - listen to who may ask this process to be suspended
 *
 * If the environment has MIGRRDMA_DIR, a folder, once in a process: a thread listens
 * on the Unix socket PID.sock in it. README.md has what is said there.
 */
void control_start(void);

/**
 * control_is_on - may this process be asked? If not, nothing is prepared for it, and real
 * objects are exactly what the application wants.
 */
bool control_is_on(void);

/** control_wait_for_reader - until there is room for an answer, or nobody wants it; not long */
void control_wait_for_reader(int fd);

/**
 * control_may_answer - is it still who has asked? While a word is obeyed the program may
 * close that file, too, and open another one.
 */
bool control_may_answer(int fd);

/** control_is_left - has who has asked gone away? Nobody waits for an answer, then. */
bool control_is_left(void);

#endif
