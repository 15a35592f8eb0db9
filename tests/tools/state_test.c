// SPDX-License-Identifier: GPL-2.0
/*
 * The migration states of a QP: the table in the module is the one in
 * docs/protocol.md, and lets no QP get stuck.
 *
 *   state_test docs/protocol.md
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../check.h"
#include "rxe_migr_state.h"

static const char *const names[RXE_MIGR_STATES] = {
	[RXE_MIGR_RUNNING] = "Running",	  [RXE_MIGR_ASKING] = "Asking",
	[RXE_MIGR_TRYING] = "Trying",	  [RXE_MIGR_PAUSED] = "Paused",
	[RXE_MIGR_RESUMING] = "Resuming", [RXE_MIGR_HELD] = "Held",
	[RXE_MIGR_STOPPED] = "Stopped",
};

/* the words of a line "| a | b | |", without the spaces around them */
static int cells(char *line, char *cell[], int most)
{
	int n = 0;

	for (char *p = strtok(line, "|\n"); p && n < most;
	     p = strtok(NULL, "|\n")) {
		p += strspn(p, " ");
		for (char *end = p + strlen(p); end > p && end[-1] == ' ';)
			*--end = 0;
		cell[n++] = p;
	}
	return n;
}

/* rows of the table whose first column is "from, to" */
static void compare(FILE *f)
{
	char line[512], *cell[RXE_MIGR_STATES + 2];
	int from = 0, n;

	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "| from, to ", 11))
			break;
	n = cells(line, cell, RXE_MIGR_STATES + 2);
	MUST(n == RXE_MIGR_STATES + 1);
	for (int to = 0; to < RXE_MIGR_STATES; to++)
		CHECK(!strcmp(cell[to + 1], names[to]));
	CHECK(fgets(line, sizeof(line), f)); /* --- */

	for (; from < RXE_MIGR_STATES && fgets(line, sizeof(line), f); from++) {
		n = cells(line, cell, RXE_MIGR_STATES + 2);
		MUST(n == RXE_MIGR_STATES + 1);
		CHECK(!strcmp(cell[0], names[from]));
		for (int to = 0; to < RXE_MIGR_STATES; to++)
			CHECK(rxe_migr_may_change(from, to) == !!*cell[to + 1],
			      "%s to %s", names[from], names[to]);
	}
	CHECK(from == RXE_MIGR_STATES);
}

/* is there a way from a state to Running, and from Running to it? */
static bool reaches(unsigned int from, unsigned int to)
{
	unsigned int seen = 1U << from, before;

	do {
		before = seen;
		for (unsigned int i = 0; i < RXE_MIGR_STATES; i++)
			for (unsigned int j = 0; j < RXE_MIGR_STATES; j++)
				if (seen >> i & 1 && rxe_migr_may_change(i, j))
					seen |= 1U << j;
	} while (seen != before);
	return seen >> to & 1;
}

static void check_sense(void)
{
	for (unsigned int i = 0; i < RXE_MIGR_STATES; i++) {
		CHECK(reaches(i, RXE_MIGR_RUNNING));
		CHECK(reaches(RXE_MIGR_RUNNING, i));
		CHECK(!rxe_migr_may_change(i, i));
		CHECK(!rxe_migr_may_change(i, RXE_MIGR_STATES));
		CHECK(!rxe_migr_may_change(RXE_MIGR_STATES, i));
		/* STOP takes whatever there is but one that is just changing */
		CHECK(rxe_migr_may_change(i, RXE_MIGR_STOPPED) ==
		      (i != RXE_MIGR_STOPPED && i != RXE_MIGR_HELD));
	}
	/* the Stopped change nothing, whatever comes in */
	CHECK(!rxe_migr_may_change(RXE_MIGR_STOPPED, RXE_MIGR_HELD));
	CHECK(!rxe_migr_may_change(RXE_MIGR_STOPPED, RXE_MIGR_TRYING));
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;

	MUST(f);
	compare(f);
	fclose(f);
	check_sense();
	return check_result();
}
