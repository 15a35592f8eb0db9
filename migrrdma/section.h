/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Read-side sections: within one, what a thread has found in a shadow stays as it is.
 * They cost a thread some instructions on memory of its own. Who changes something
 * waits until all sections have ended that may know it from before; that one makes all
 * threads pass a barrier by membarrier(2), so that they need none.
 */
#ifndef MIGRRDMA_SECTION_H
#define MIGRRDMA_SECTION_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct section {
	/*
	 * Of nesting; far below 0 before the first one. Others read it. The thread itself
	 * changes it in one instruction, for which C has no atomic that is not locked: a
	 * handler of a signal may begin its first one. ThreadSanitizer is shown the locked
	 * one, in the order that is relied on: sections_have_ended() acquires.
	 */
	int depth;
	unsigned int ended; /* the last wait that has found it ended */
	struct section *next, **link;
};

#define SECTION_UNKNOWN INT_MIN

extern _Thread_local struct section own_section;

/*
 * make the others know this thread, unless a handler of a signal has done so since
 * section_enter(), and begin its section
 */
void section_enlist(void);

/* begin a section, unless it is the thread's first one */
static inline bool section_enter(void)
{
#ifdef __SANITIZE_THREAD__
	__atomic_fetch_add(&own_section.depth, 1, __ATOMIC_RELAXED);
#else
	own_section.depth++;
#endif
	atomic_signal_fence(memory_order_seq_cst);
	return __builtin_expect(own_section.depth > 0, 1);
}

static inline void section_begin(void)
{
	if (!section_enter())
		section_enlist();
}

/* what the section did comes before its end, for who waits for that */
static inline void section_end(void)
{
#ifdef __SANITIZE_THREAD__
	__atomic_fetch_sub(&own_section.depth, 1, __ATOMIC_RELEASE);
#else
	atomic_thread_fence(memory_order_release);
	own_section.depth--;
#endif
	atomic_signal_fence(memory_order_seq_cst);
}

/**
 * sections_init - before the first section of a process in which there is to be
 *		   sections_wait()
 *
 * Return: 0 or an errno
 */
int sections_init(void);

/** sections_barrier - let all threads of the process pass a barrier */
void sections_barrier(void);

/*
 * The two steps of the following: let it begin, and look whether all of them have ended
 * since, again and again.
 */
void sections_begin_wait(void);
bool sections_have_ended(void);

/**
 * sections_wait - wait for sections that may not have seen what was changed before
 * @deadline: in ns of CLOCK_MONOTONIC
 *
 * One caller at a time. A thread is waited for until it is met between two sections,
 * so what was changed should keep them short.
 *
 * Return: true, or false if there still is one
 */
bool sections_wait(uint64_t deadline);

#endif
