// SPDX-License-Identifier: GPL-2.0
/*
 * migr_fuzz - what the kernel makes of bad images and bad commands
 *
 *   migr_fuzz [-p PART] [-t SECONDS] [-s SEED] [-d DEVICE] [-k KEYFILE] [ATTACK...]
 *   migr_fuzz -l: lists the attacks
 *
 *   -p  of the bad records try one in PART (1: all), drawn with the seed
 *   -t  how long races and lives go on each, which could for ever (10)
 *   -s  the seed of what is left to chance; one is drawn, and printed
 *   -k  the cluster's key, for images that are signed (/opt/migr/cluster.key)
 *
 * All attacks if none is given. User space's own checks are bypassed. The kernel has
 * to refuse, or to survive what it accepted; whether it did, its log says. Exit code:
 * 0, 1 if a command ended as it should not, 2 if there was no way to go on.
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

static size_t part = 1;
static double seconds = 10;

static void records(struct rig *rig)
{
	attack_records(rig, part);
}

static void races(struct rig *rig)
{
	attack_races(rig, seconds);
}

static void lives(struct rig *rig)
{
	attack_lives(rig, seconds);
}

/* in the order in which they run */
static const struct {
	const char *name;
	void (*run)(struct rig *rig);
} attacks[] = {
	{ "arguments", attack_arguments },
	{ "refusals", attack_refusals },
	{ "restore", attack_restore },
	{ "unprivileged", attack_unprivileged },
	{ "doorbell", attack_doorbell },
	{ "events", attack_events },
	{ "clones", attack_clones },
	{ "rings", attack_rings },
	{ "flush", attack_flush },
	{ "sqd", attack_sqd },
	{ "windows", attack_windows },
	{ "dirty", attack_dirty },
	{ "tracked", attack_tracked },
	{ "datagrams", attack_datagrams },
	{ "uc", attack_uc },
	{ "rtr", attack_rtr },
	{ "absent", attack_absent },
	{ "runs_on", attack_runs_on },
	{ "images", attack_images },
	{ "crafted", attack_crafted },
	{ "records", records },
	{ "held", attack_held },
	{ "races", races },
	{ "lives", lives },
};
#define ATTACKS (sizeof(attacks) / sizeof(attacks[0]))

static bool is_attack(const char *name)
{
	for (size_t i = 0; i < ATTACKS; i++)
		if (!strcmp(attacks[i].name, name))
			return true;
	return false;
}

/* a name that is none would run nothing, and that be well */
static bool are_attacks(char **names)
{
	for (; *names; names++)
		if (!is_attack(*names)) {
			fprintf(stderr, "there is no attack '%s'\n", *names);
			return false;
		}
	return true;
}

static int list_attacks(void)
{
	for (size_t i = 0; i < ATTACKS; i++)
		puts(attacks[i].name);
	return 0;
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
	struct rig rig = {};
	int c;

	while ((c = getopt(argc, argv, "lp:t:s:d:k:")) != -1) {
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
		else if (c == 'l')
			return list_attacks();
		else
			return 2;
	}
	argv += optind;
	if (!part || !are_attacks(argv))
		return 2;
	srandom(seed);
	printf("seed %u\n", seed);

	cluster_key_read(key, &fuzz_key_id);
	rig_open(&rig, device);
	for (size_t i = 0; i < ATTACKS; i++)
		if (wanted(argv, attacks[i].name)) {
			say(attacks[i].name);
			attacks[i].run(&rig);
		}
	rig_close(&rig);

	printf("%s\n", fuzz_failures ? "FAIL" : "ok");
	return fuzz_failures != 0;
}
