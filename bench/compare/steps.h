/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instructions that this process executes in user space between two marks, counted by its
 * parent by single steps; and the socket of libmigrrdma, to which it says what a daemon
 * would say.
 */
#ifndef COMPARE_STEPS_H
#define COMPARE_STEPS_H

#include <stdio.h>

/** mark - the next count begins here, or the last one ends */
static inline void mark(void)
{
	__asm__ volatile("int3" ::: "memory");
}

/** steps_list - if it is not NULL each instruction is written there: the number of the count,
 * where it is in its file, and that file; set before steps_of()
 */
extern FILE *steps_list;

/**
 * steps_of - fork a child that runs a function, and count
 * @run: the child's exit code is what it returns
 * @arg: what it gets
 * @told: called in the parent with each count, and its number from 0
 *
 * Return: how many there were, or -1 if the child has failed
 */
int steps_of(int (*run)(void *arg), void *arg,
	     void (*told)(unsigned int number, unsigned int instructions));

/** word - to this process' own control socket, in a folder; ends it if that says no.
 *
 * Return: the answer, until the next call
 */
const char *word(const char *dir, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** word_end - nobody is connected any more */
void word_end(void);

#endif
