// SPDX-License-Identifier: GPL-2.0
/*
 * compare-report JSON FOLDER
 *
 * Makes of a result of bench/compare, as JSON, the page compare.md and the pictures
 * compare-FIGURE.svg in a folder. Exit code 1, and a reason, if it is no such result.
 */
#include "report.h"

static int write_text(const json_t *r, const char *folder)
{
	char name[4096];
	FILE *f;
	int err;

	snprintf(name, sizeof(name), "%s/compare.md", folder);
	f = fopen(name, "w");
	if (!f) {
		perror(name);
		return -1;
	}
	err = write_page(f, r);
	if (fclose(f) || err) {
		perror(name);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	json_t *r;
	int err;

	if (argc != 3) {
		fputs("usage: compare-report JSON FOLDER\n", stderr);
		return 2;
	}
	r = report_read(argv[1]);
	if (!r)
		return 1;
	err = bars(r, argv[2], "blackout", "blackout by part, ms",
		   blackout_parts, "partner") ||
	      curves(r, argv[2]) || slots(r, argv[2]) ||
	      bars(r, argv[2], "datapath", "instructions of a call",
		   datapath_parts, NULL) ||
	      bars(r, argv[2], "stop", "from the stop to the first packet, ms",
		   stop_parts, NULL) ||
	      bars(r, argv[2], "jobs", "a job, and what its move adds, ms",
		   jobs_parts, NULL) ||
	      write_text(r, argv[2]);
	json_decref(r);
	return err ? 1 : 0;
}
