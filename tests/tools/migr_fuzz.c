// SPDX-License-Identifier: GPL-2.0
/*
 * migr_fuzz - what the kernel makes of bad images and bad commands
 *
 *   migr_fuzz [-p PART] [-t SECONDS] [-s SEED] [-d DEVICE] [-k KEYFILE] [ATTACK...]
 *
 *   -p  of the bad records try one in PART (1: all), drawn with the seed
 *   -t  how long races and lives go on each, which could for ever (10)
 *   -s  the seed of what is left to chance; one is drawn, and printed
 *   -k  the cluster's key, for images that are signed (/opt/migr/cluster.key)
 *
 * ATTACK: images, records, crafted, arguments, refusals, restore, unprivileged,
 * doorbell, events, clones, rings, flush, sqd, windows, datagrams, uc, rtr, races,
 * lives; all if none is given. User space's own checks are bypassed. The kernel has to refuse, or to survive
 * what it accepted; whether it did, its log says. Exit code: 0, 1 if a command ended
 * as it should not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster_key.h"
#include "migr_fuzz.h"

int fuzz_failures;

void fuzz_must(bool ok, const char *file, int line, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, strerror(errno));
	exit(2);
}

int fuzz_expect(int ret, const int *want, size_t n, const char *what,
		const char *file, int line)
{
	for (size_t i = 0; i < n; i++)
		if (ret == want[i])
			return ret;
	fprintf(stderr, "%s:%d: %s: %d (%s), not %d (%s)\n", file, line, what,
		ret, strerror(ret < 0 ? -ret : 0), want[0],
		strerror(want[0] < 0 ? -want[0] : 0));
	fuzz_failures++;
	return ret;
}

double fuzz_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool wanted(char **names, const char *name)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static void say(const char *name)
{
	printf("%s\n", name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *device = "rxe0", *key = "/opt/migr/cluster.key";
	unsigned int seed = (unsigned int)time(NULL);
	double seconds = 10;
	size_t part = 1;
	struct rig rig = {};
	int c;

	while ((c = getopt(argc, argv, "p:t:s:d:k:")) != -1) {
		if (c == 't')
			seconds = atof(optarg);
		else if (c == 'p')
			part = strtoul(optarg, NULL, 0);
		else if (c == 's')
			seed = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'd')
			device = optarg;
		else if (c == 'k')
			key = optarg;
		else
			return 2;
	}
	argv += optind;
	if (!part)
		return 2;
	srandom(seed);
	printf("seed %u\n", seed);

	cluster_key_read(key, &fuzz_key_id);
	rig_open(&rig, device);
	if (wanted(argv, "arguments")) {
		say("arguments");
		attack_arguments(&rig);
	}
	if (wanted(argv, "refusals")) {
		say("refusals");
		attack_refusals(&rig);
	}
	if (wanted(argv, "restore")) {
		say("restore");
		attack_restore(&rig);
	}
	if (wanted(argv, "unprivileged")) {
		say("unprivileged");
		attack_unprivileged(&rig);
	}
	if (wanted(argv, "doorbell")) {
		say("doorbell");
		attack_doorbell(&rig);
	}
	if (wanted(argv, "events")) {
		say("events");
		attack_events(&rig);
	}
	if (wanted(argv, "clones")) {
		say("clones");
		attack_clones(&rig);
	}
	if (wanted(argv, "rings")) {
		say("rings");
		attack_rings(&rig);
	}
	if (wanted(argv, "flush")) {
		say("flush");
		attack_flush(&rig);
	}
	if (wanted(argv, "sqd")) {
		say("sqd");
		attack_sqd(&rig);
	}
	if (wanted(argv, "windows")) {
		say("windows");
		attack_windows(&rig);
	}
	if (wanted(argv, "datagrams")) {
		say("datagrams");
		attack_datagrams(&rig);
	}
	if (wanted(argv, "uc")) {
		say("uc");
		attack_uc(&rig);
	}
	if (wanted(argv, "rtr")) {
		say("rtr");
		attack_rtr(&rig);
	}
	if (wanted(argv, "images")) {
		say("images");
		attack_images(&rig);
	}
	if (wanted(argv, "crafted")) {
		say("crafted");
		attack_crafted(&rig);
	}
	if (wanted(argv, "records")) {
		say("records");
		attack_records(&rig, part);
	}
	if (wanted(argv, "races")) {
		say("races");
		attack_races(&rig, seconds);
	}
	if (wanted(argv, "lives")) {
		say("lives");
		attack_lives(&rig, seconds);
	}
	rig_close(&rig);

	printf("%s\n", fuzz_failures ? "FAIL" : "ok");
	return fuzz_failures != 0;
}
