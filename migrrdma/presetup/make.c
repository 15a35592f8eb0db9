// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The calls are those of build.c, in its order: with others the tape is of no use.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "inner.h"

#define MOST_OBJECTS 65536 /* of a kind */

bool make_fail(struct made *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(m->reason, m->bytes, fmt, args);
	va_end(args);
	return false;
}

bool make_failed(struct made *m, const char *what, int err)
{
	return make_fail(m, "no %s: %s", what, strerror(err ? err : EIO));
}

/* --- objects --- */

/* the one of this name, or the only one. Return: NULL and errno */
static struct ibv_context *open_named(const char *name)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int n, err = ENODEV;

	list = ibv_get_device_list(&n);
	if (!list)
		return NULL;
	for (int i = 0; i < n && !ctx; i++)
		if (n == 1 || !strcmp(list[i]->name, name)) {
			ctx = ibv_open_device(list[i]);
			err = errno;
		}
	ibv_free_device_list(list);
	errno = err;
	return ctx;
}

static bool open_device(struct made *m, const char *name)
{
	int err;

	m->ctx = open_named(name);
	if (!m->ctx)
		return make_fail(m, "no device %.64s: %s", name,
				 strerror(errno));
	err = arena_give(m->ctx);
	return !err || make_fail(m, "the device's provider takes no memory: %s",
				 strerror(err));
}

/* With the first region of all a driver may make what it needs for regions. */
static void register_one(struct ibv_context *ctx)
{
	static char memory[4096];
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr =
		pd ? ibv_reg_mr(pd, memory, sizeof(memory), 0) : NULL;

	if (mr)
		ibv_dereg_mr(mr);
	if (pd)
		ibv_dealloc_pd(pd);
}

void make_ready(json_t *record)
{
	json_t *json, *contexts = json_object_get(record, "contexts");
	struct ibv_context *ctx;
	const char *name;
	size_t i;

	json_array_foreach (contexts, i, json) {
		name = json_string_value(json_object_get(json, "device"));
		ctx = name ? open_named(name) : NULL;
		if (!ctx)
			continue;
		register_one(ctx);
		ibv_close_device(ctx);
	}
}

static bool make_plain(struct made *m, int pds, int channels)
{
	m->pds = calloc((size_t)pds + 1, sizeof(*m->pds));
	m->channels = calloc((size_t)channels + 1, sizeof(*m->channels));
	if (!m->pds || !m->channels)
		return make_fail(m, "no memory");
	while (m->n_pds < pds) {
		m->pds[m->n_pds] = ibv_alloc_pd(m->ctx);
		if (!m->pds[m->n_pds++])
			return make_failed(m, "PD", errno);
	}
	while (m->n_channels < channels) {
		m->channels[m->n_channels] = ibv_create_comp_channel(m->ctx);
		if (!m->channels[m->n_channels++])
			return make_failed(m, "channel", errno);
	}
	return true;
}

static bool make_cq(struct made *m, json_t *json)
{
	int cqe, vector, channel, extended, mask = 0, flags = 0;
	int count = -1, period = 0, err = 0;
	json_int_t wc_flags = 0;
	struct ibv_cq *cq;

	if (json_unpack(json, "{s:i, s:i, s:i, s:i, s?I, s?i, s?i, s?i, s?i !}",
			"cqe", &cqe, "vector", &vector, "channel", &channel,
			"extended", &extended, "wc_flags", &wc_flags, "mask",
			&mask, "flags", &flags, "count", &count, "period",
			&period) ||
	    vector < 0 || !IS_PLACE(m, channels, channel))
		return make_fail(m, "a CQ in the record is none");
	if (m->ctx->num_comp_vectors > 0)
		vector %= m->ctx->num_comp_vectors;
	if (extended) {
		struct ibv_cq_init_attr_ex a = {
			.cqe = (uint32_t)cqe,
			.channel = AT(m, channels, channel),
			.comp_vector = (uint32_t)vector,
			.wc_flags = (uint64_t)wc_flags,
			.comp_mask = (uint32_t)mask,
			.flags = (uint32_t)flags,
		};
		struct ibv_cq_ex *ex = ibv_create_cq_ex(m->ctx, &a);

		cq = ex ? ibv_cq_ex_to_cq(ex) : NULL;
	} else {
		cq = ibv_create_cq(m->ctx, cqe, NULL, AT(m, channels, channel),
				   vector);
	}
	if (!cq)
		return make_failed(m, "CQ", errno);
	m->cqs[m->n_cqs++] = cq;
	if (count >= 0) {
		struct ibv_modify_cq_attr a = {
			.attr_mask = IBV_CQ_ATTR_MODERATE,
			.moderate = { (uint16_t)count, (uint16_t)period },
		};

		err = ibv_modify_cq(cq, &a);
	}
	return !err || make_failed(m, "moderation of a CQ", err);
}

static bool make_srq(struct made *m, json_t *json)
{
	struct ibv_srq_init_attr_ex a = {};
	struct ibv_srq *srq;
	int pd, extended;

	if (json_unpack(json, "{s:i, s:i, s:i, s:i, s:i !}", "pd", &pd,
			"max_wr", &a.attr.max_wr, "max_sge", &a.attr.max_sge,
			"extended", &extended, "mask", &a.comp_mask) ||
	    pd < 0 || !IS_PLACE(m, pds, pd) ||
	    a.comp_mask &
		    ~(uint32_t)(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD))
		return make_fail(m, "an SRQ in the record is none");
	a.pd = m->pds[pd];
	a.srq_type = IBV_SRQT_BASIC;
	if (extended) {
		srq = ibv_create_srq_ex(m->ctx, &a);
	} else {
		struct ibv_srq_init_attr plain = { .attr = a.attr };

		srq = ibv_create_srq(a.pd, &plain);
	}
	if (!srq)
		return make_failed(m, "SRQ", errno);
	m->srqs[m->n_srqs++] = srq;
	return true;
}

/* --- all of them --- */

static bool make_each(struct made *m, json_t *list,
		      bool (*make)(struct made *m, json_t *json))
{
	json_t *json;
	size_t i;

	json_array_foreach (list, i, json)
		if (!make(m, json))
			return false;
	return true;
}

static bool make_objects(struct made *m, json_t *json)
{
	int pds, channels;
	json_t *cqs, *srqs, *qps;
	const char *device;

	if (json_unpack(json, "{s:s, s:i, s:i, s:o, s:o, s:o !}", "device",
			&device, "pds", &pds, "channels", &channels, "cqs",
			&cqs, "srqs", &srqs, "qps", &qps) ||
	    pds < 0 || pds > MOST_OBJECTS || channels < 0 ||
	    channels > MOST_OBJECTS || json_array_size(cqs) > MOST_OBJECTS ||
	    json_array_size(srqs) > MOST_OBJECTS ||
	    json_array_size(qps) > MOST_OBJECTS)
		return make_fail(m, "a context in the record is none");
	m->cqs = calloc(json_array_size(cqs) + 1, sizeof(*m->cqs));
	m->srqs = calloc(json_array_size(srqs) + 1, sizeof(*m->srqs));
	if (!make_qps_room(m, json_array_size(qps)))
		return false;
	if (!m->cqs || !m->srqs)
		return make_fail(m, "no memory");
	return open_device(m, device) && make_plain(m, pds, channels) &&
	       make_each(m, cqs, make_cq) && make_each(m, srqs, make_srq) &&
	       make_each(m, qps, make_qp);
}

bool make_all(json_t *record, char *reason, size_t bytes)
{
	json_t *json, *contexts = json_object_get(record, "contexts");
	bool good = json_array_size(contexts) > 0;
	size_t i;

	if (!good)
		snprintf(reason, bytes, "there are no contexts in the record");
	json_array_foreach (contexts, i, json) {
		struct made m = { .reason = reason, .bytes = bytes };

		good = good && make_objects(&m, json);
		free(m.pds);
		free(m.channels);
		free(m.cqs);
		free(m.srqs);
	}
	return good;
}
