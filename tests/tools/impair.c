// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "impair.h"
#include "link.h"

static bool percent(const char *word, double *out)
{
	char *end;
	double n;

	if (!word || *word < '0' || *word > '9')
		return false;
	n = strtod(word, &end);
	*out = n / 100;
	return n <= 100 && !strcmp(end, "%");
}

static bool duration(const char *word, uint64_t *ns)
{
	return word && link_parse_time(word, ns);
}

static bool seed(const char *word, uint64_t *out)
{
	char *end;

	if (!word || *word < '0' || *word > '9')
		return false;
	errno = 0;
	*out = strtoull(word, &end, 0);
	return !*end && !errno;
}

const char *impair_parse(struct impair_spec *spec, char **words)
{
	for (; *words; words++) {
		const char *name = *words;
		bool ok;

		if (!strcmp(name, "loss")) {
			ok = percent(*++words, &spec->loss);
		} else if (!strcmp(name, "duplicate")) {
			ok = percent(*++words, &spec->duplicate);
		} else if (!strcmp(name, "reorder")) {
			ok = percent(*++words, &spec->reorder);
		} else if (!strcmp(name, "delay")) {
			ok = duration(*++words, &spec->delay);
			if (ok && words[1] && words[1][0] >= '0' &&
			    words[1][0] <= '9')
				ok = duration(*++words, &spec->jitter);
		} else if (!strcmp(name, "rate")) {
			ok = *++words && link_parse_rate(*words, &spec->rate);
		} else if (!strcmp(name, "seed")) {
			ok = seed(*++words, &spec->seed);
		} else {
			return name;
		}
		if (!ok)
			return name;
	}
	if (spec->reorder > 0 && !spec->delay)
		return "reorder without delay";
	return NULL;
}

/* The headers' length that the kernel gives is a hint only. */
static uint32_t headers_of(const struct virtio_net_hdr *v, const uint8_t *frame,
			   size_t len)
{
	size_t tcp = v->csum_start + 12;

	if (v->gso_type == VIRTIO_NET_HDR_GSO_UDP_L4)
		return v->csum_start + 8;
	return tcp < len ? v->csum_start + 4 * (frame[tcp] >> 4) : 0;
}

uint64_t impair_bytes(const struct virtio_net_hdr *v, const uint8_t *frame,
		      size_t len)
{
	uint32_t headers, segment;

	if (v->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return link_bytes(len, 0, 0);
	headers = headers_of(v, frame, len);
	segment = headers && headers < len ? v->gso_size : 0;
	return link_bytes(len, headers, segment);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static double fraction(uint64_t *state)
{
	return (draw(state) >> 11) * 0x1p-53;
}

/* Some are in time and overtake those that are late. */
static uint64_t lateness(const struct impair_spec *spec, uint64_t *state)
{
	double late;

	if (!spec->delay || fraction(state) < spec->reorder)
		return 0;
	late = spec->delay + (2 * fraction(state) - 1) * spec->jitter;
	return late > 0 ? late : 0;
}

struct impair_fate impair_next(const struct impair_spec *spec, uint64_t *state)
{
	struct impair_fate fate = { .count = 1 };
	int i;

	/* As with netem a frame may be both, and then goes as one. */
	if (fraction(state) < spec->duplicate)
		fate.count++;
	if (fraction(state) < spec->loss)
		fate.count--;
	for (i = 0; i < fate.count; i++)
		fate.delay[i] = lateness(spec, state);
	return fate;
}
