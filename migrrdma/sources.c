// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "sources.h"

#include <string.h>

#include "elsewhere.h"

/*
 * Some that are at a GID, by their real numbers, and were known at another one. They grow with
 * the gate closed, and none goes.
 */
struct source {
	union ibv_gid at, gid;
	struct names *known; /* numbers there */
	struct source *next;
};
static struct source *_Atomic sources;
atomic_bool elsewhere_is_told;

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

void sources_known_as(union ibv_gid *gid, uint32_t *qpn)
{
	const struct source *s =
		atomic_load_explicit(&sources, memory_order_acquire);
	uint32_t name;

	for (; s; s = s->next) {
		name = same(&s->at, gid) ? names_get(s->known, *qpn & 0xffffff)
					 : 0;
		if (name) {
			*gid = s->gid;
			*qpn = name;
			return;
		}
	}
}

static struct source *source_of(const union ibv_gid *at,
				const union ibv_gid *gid)
{
	struct source *s = sources;

	while (s && !(same(&s->at, at) && same(&s->gid, gid)))
		s = s->next;
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s)
		s->known = names_new();
	if (!s || !s->known) {
		free(s);
		return NULL;
	}
	s->at = *at;
	s->gid = *gid;
	s->next = sources;
	atomic_store_explicit(&sources, s, memory_order_release);
	atomic_store(&elsewhere_is_told, true);
	return s;
}

int sources_add(const union ibv_gid *at, uint32_t real,
		const union ibv_gid *gid, uint32_t name)
{
	struct source *s = source_of(at, gid);

	return s ? names_set(s->known, real, name) : ENOMEM;
}

void sources_drop(const union ibv_gid *at, uint32_t real)
{
	for (struct source *s = sources; s; s = s->next)
		if (same(&s->at, at))
			names_set(s->known, real, 0);
}

/* --- what comes before a datagram --- */

enum {
	IPV6_SOURCE = 8,
	IPV6_DESTINATION = 24,
	IPV4 = 20, /* where such a header is */
	IPV4_BYTES = 20,
	IPV4_SUM = IPV4 + 10,
	IPV4_SOURCE = IPV4 + 12,
	IPV4_DESTINATION = IPV4 + 16,
};

static uint16_t sum_of(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

/* An IPv4 header is in its last bytes, and what is before that anything (IBA annex A17). */
static bool is_ipv4(const uint8_t *grh)
{
	if (grh[IPV4] >> 4 != 4)
		return false;
	return grh[0] >> 4 != 6 ||
	       (grh[IPV4] == 0x45 && sum_of(grh + IPV4) == 0xffff);
}

static bool is_mapped(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

static void set_ipv4(uint8_t *grh, int place, const union ibv_gid *gid)
{
	uint16_t sum;

	memcpy(grh + place, gid->raw + 12, 4);
	grh[IPV4_SUM] = grh[IPV4_SUM + 1] = 0;
	sum = (uint16_t)~sum_of(grh + IPV4);
	grh[IPV4_SUM] = (uint8_t)(sum >> 8);
	grh[IPV4_SUM + 1] = (uint8_t)sum;
}

uint32_t elsewhere_source_of(const struct ibv_context *ctx, void *grh,
			     uint32_t qpn)
{
	union ibv_gid from = { .raw = { [10] = 0xff, 0xff } }, gid;
	uint8_t *bytes = grh;
	uint32_t name = qpn;
	bool ipv4;

	/* then it may be no address of this process */
	if (atomic_load(&container_of(ctx, struct shadow_context, verbs.context)
				 ->has_iovas))
		return qpn;
	ipv4 = is_ipv4(bytes);
	if (ipv4)
		memcpy(from.raw + 12, bytes + IPV4_SOURCE, 4);
	else if (bytes[0] >> 4 == 6)
		memcpy(from.raw, bytes + IPV6_SOURCE, sizeof(from));
	else
		return qpn;
	gid = from;
	sources_known_as(&gid, &name);
	if (same(&gid, &from))
		return name;
	if (is_mapped(&gid) != ipv4) /* there is no room for it */
		return qpn;
	if (ipv4)
		set_ipv4(bytes, IPV4_SOURCE, &gid);
	else
		memcpy(bytes + IPV6_SOURCE, &gid, sizeof(gid));
	return name;
}

bool sources_set_destination(void *grh, const union ibv_gid *gid)
{
	uint8_t *bytes = grh;
	bool ipv4 = is_ipv4(bytes);

	if (is_mapped(gid) != ipv4 || (!ipv4 && bytes[0] >> 4 != 6))
		return false;
	if (ipv4 ? bytes[IPV4_DESTINATION] >> 4 == 0xe
		 : bytes[IPV6_DESTINATION] == 0xff)
		return false;
	if (ipv4)
		set_ipv4(bytes, IPV4_DESTINATION, gid);
	else
		memcpy(bytes + IPV6_DESTINATION, gid, sizeof(*gid));
	return true;
}
