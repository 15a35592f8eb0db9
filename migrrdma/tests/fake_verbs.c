// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What applications see follows libibverbs/verbs.c and device.c; what is behind
 * that only counts and remembers.
 */
#include "fake_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define CONTAINER(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define die(...)                              \
	do {                                  \
		fprintf(stderr, "fake: ");    \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr);          \
		abort();                      \
	} while (0)

/* --- what is alive --- */

static const char *const kind_names[] = {
	"list", "device",  "context",  "PD",   "TD",	      "MR", "MW",
	"AH",	"channel", "CQ",       "SRQ",  "QP",	      "WQ", "WQ table",
	"XRCD", "DM",	   "counters", "flow", "flow action",
};

struct object {
	enum fake_kind kind;
	void *p;
	struct object *next; /* older */
};

static struct object *objects;
static uint32_t last_handle;

/* with the lock */
static struct object **find(enum fake_kind kind, const void *p)
{
	struct object **o;

	for (o = &objects; *o; o = &(*o)->next)
		if ((*o)->kind == kind && (*o)->p == p)
			return o;
	return NULL;
}

static void own(enum fake_kind kind, const void *p, const char *call)
{
	struct object **o;

	pthread_mutex_lock(&lock);
	o = find(kind, p);
	pthread_mutex_unlock(&lock);
	if (!o)
		die("%s: %p is no living %s of mine", call, p,
		    kind_names[kind]);
}
#define OWN(kind, p) own(FAKE_##kind, p, __func__)
#define OWN_OR_NULL(kind, p)          \
	do {                          \
		if (p)                \
			OWN(kind, p); \
	} while (0)

/* with the lock */
static void add(enum fake_kind kind, void *p)
{
	struct object *o = malloc(sizeof(*o));

	if (!o)
		die("no memory");
	o->kind = kind;
	o->p = p;
	o->next = objects;
	objects = o;
}

static void *make(enum fake_kind kind, size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		die("no memory");
	pthread_mutex_lock(&lock);
	add(kind, p);
	pthread_mutex_unlock(&lock);
	return p;
}

static uint32_t new_handle(void)
{
	return __atomic_add_fetch(&last_handle, 1, __ATOMIC_RELAXED);
}

static void forget(enum fake_kind kind, void *p, const char *call)
{
	struct object **o, *gone;

	pthread_mutex_lock(&lock);
	o = find(kind, p);
	if (!o)
		die("%s: %p is no living %s of mine", call, p,
		    kind_names[kind]);
	gone = *o;
	*o = gone->next;
	pthread_mutex_unlock(&lock);
	free(gone);
}

#define DESTROY(kind, p)                          \
	do {                                      \
		forget(FAKE_##kind, p, __func__); \
		free(p);                          \
	} while (0)

void *fake_newest(enum fake_kind kind)
{
	struct object *o;

	pthread_mutex_lock(&lock);
	for (o = objects; o && o->kind != kind; o = o->next)
		;
	pthread_mutex_unlock(&lock);
	return o ? o->p : NULL;
}

void *fake_older(const void *object)
{
	struct object *o, *older;

	pthread_mutex_lock(&lock);
	for (o = objects; o && o->p != object; o = o->next)
		;
	for (older = o ? o->next : NULL; older && older->kind != o->kind;
	     older = older->next)
		;
	pthread_mutex_unlock(&lock);
	return older ? older->p : NULL;
}

void fake_next_handle(uint32_t handle)
{
	last_handle = handle - 1;
}

unsigned int fake_alive(enum fake_kind kind)
{
	unsigned int n = 0;

	pthread_mutex_lock(&lock);
	for (struct object *o = objects; o; o = o->next)
		n += o->kind == kind;
	pthread_mutex_unlock(&lock);
	return n;
}

/* --- calls --- */

struct call {
	const char *name;
	uint64_t args[8];
	bool seen;
	int fail;
	unsigned int fails; /* how often yet */
	unsigned int after; /* so many that do not */
	struct call *next;
};

static struct call *calls;
struct fake_last fake_last;

/* with the lock */
static struct call *call_of(const char *name)
{
	struct call *c;

	for (c = calls; c && strcmp(c->name, name); c = c->next)
		;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			die("no memory");
		c->name = name;
		c->next = calls;
		calls = c;
	}
	return c;
}

void fake_fail(const char *name, int err)
{
	fake_fail_times(name, err, 1);
}

void fake_fail_times(const char *name, int err, unsigned int times)
{
	struct call *c;

	pthread_mutex_lock(&lock);
	c = call_of(name);
	c->fail = err;
	c->fails = times;
	pthread_mutex_unlock(&lock);
}

void fake_fail_later(const char *name, int err, unsigned int after)
{
	fake_fail(name, err);
	pthread_mutex_lock(&lock);
	call_of(name)->after = after;
	pthread_mutex_unlock(&lock);
}

static int enter(const char *name, const uint64_t args[8])
{
	struct call *c;
	int err;

	pthread_mutex_lock(&lock);
	c = call_of(name);
	memcpy(c->args, args, sizeof(c->args));
	c->seen = true;
	err = c->after ? 0 : c->fail;
	if (c->after)
		c->after--;
	if (err && !--c->fails)
		c->fail = 0;
	pthread_mutex_unlock(&lock);
	if (err)
		errno = err;
	return err;
}

/* how functions begin: remember the arguments, fail if that is wanted */
#define ENTER(...) enter(__func__, FAKE_ARGS(__VA_ARGS__))
#define ENTER_OR(ret, ...)              \
	do {                            \
		if (ENTER(__VA_ARGS__)) \
			return ret;     \
	} while (0)
#define ENTER_ERR(...)                         \
	do {                                   \
		int err_ = ENTER(__VA_ARGS__); \
                                               \
		if (err_)                      \
			return err_;           \
	} while (0)

#define KEEP(member, value)                  \
	do {                                 \
		pthread_mutex_lock(&lock);   \
		fake_last.member = (value);  \
		pthread_mutex_unlock(&lock); \
	} while (0)

bool fake_saw(const char *name, const uint64_t args[8])
{
	struct call *c;
	bool same;

	pthread_mutex_lock(&lock);
	c = call_of(name);
	same = c->seen && !memcmp(c->args, args, sizeof(c->args));
	if (!c->seen)
		fprintf(stderr, "fake: %s was not called\n", name);
	for (int i = 0; c->seen && i < 8; i++)
		if (c->args[i] != args[i])
			fprintf(stderr, "fake: %s: %d: %#llx, not %#llx\n",
				name, i, (unsigned long long)c->args[i],
				(unsigned long long)args[i]);
	c->seen = false;
	pthread_mutex_unlock(&lock);
	return same;
}

/* --- events and completions --- */

struct item {
	void *of;
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct item *next;
};

static struct item *cq_events, *async_events, *completions;

static void put(struct item **queue, const struct item *item)
{
	struct item *i = malloc(sizeof(*i));

	if (!i)
		die("no memory");
	*i = *item;
	i->next = NULL;
	pthread_mutex_lock(&lock);
	while (*queue)
		queue = &(*queue)->next;
	*queue = i;
	pthread_mutex_unlock(&lock);
}

static bool get(struct item **queue, const void *of, struct item *item)
{
	struct item *i;

	pthread_mutex_lock(&lock);
	while (*queue && (*queue)->of != of)
		queue = &(*queue)->next;
	i = *queue;
	if (i) {
		*item = *i;
		*queue = i->next;
	}
	pthread_mutex_unlock(&lock);
	free(i);
	return i;
}

/* what an object that is destroyed leaves: of it, or with it as the element */
static void purge(struct item **queue, const void *object)
{
	struct item *gone;

	pthread_mutex_lock(&lock);
	while (*queue) {
		gone = *queue;
		if (gone->of != object && gone->event.element.cq != object) {
			queue = &gone->next;
			continue;
		}
		*queue = gone->next;
		free(gone);
	}
	pthread_mutex_unlock(&lock);
}

void fake_complete(struct ibv_cq *real, const struct ibv_wc *wc)
{
	OWN(CQ, real);
	put(&completions, &(struct item){ .of = real, .wc = *wc });
}

/* Descriptors can be read, once for each event. */
static int open_fd(void)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);

	if (fd < 0)
		die("eventfd: %s", strerror(errno));
	return fd;
}

static void ring(int fd)
{
	if (write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		die("eventfd: %s", strerror(errno));
}

static void unring(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		die("eventfd: %s", strerror(errno));
}

void fake_cq_event(struct ibv_cq *real)
{
	OWN(CQ, real);
	put(&cq_events,
	    &(struct item){ .of = real->channel, .event.element.cq = real });
	ring(real->channel->fd);
}

void fake_async_event(struct ibv_context *real,
		      const struct ibv_async_event *event)
{
	OWN(CONTEXT, real);
	put(&async_events, &(struct item){ .of = real, .event = *event });
	ring(real->async_fd);
}

/* --- devices --- */

/* the first members behind @device are those of struct verbs_device */
struct fake_device {
	struct ibv_device device;
	struct hidden {
		const void *ops;
		long refcount;
		void *entry[2], *sysfs;
		uint64_t core_support;
	} hidden;
	int number;
	unsigned int refs;
};

static const char fake_ops[1];
const char *fake_prefix = "fake";

/* A device that is plugged in has the address of one that is gone. */
static struct fake_device devices[FAKE_DEVICES];

bool fake_dv_is_supported(struct ibv_device *device)
{
	static const struct hidden nothing;
	const struct hidden *hidden = &((struct fake_device *)device)->hidden;

	if (hidden->ops == fake_ops)
		return true;
	if (memcmp(hidden, &nothing, sizeof(nothing)))
		die("%s: something is behind %p", __func__, (void *)device);
	return false;
}

static struct ibv_device *get_device(int n)
{
	struct fake_device *f = &devices[n];
	struct ibv_device *d = &f->device;

	pthread_mutex_lock(&lock);
	if (!f->refs++) {
		f->hidden.ops = fake_ops;
		f->hidden.sysfs = f;
		f->number = n;
		d->node_type = IBV_NODE_CA;
		d->transport_type = IBV_TRANSPORT_IB;
		snprintf(d->name, sizeof(d->name), "%s%d", fake_prefix, n);
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%d", n);
		snprintf(d->dev_path, sizeof(d->dev_path), "/sys/dev%d", n);
		snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/ib%d", n);
		add(FAKE_DEVICE, f);
	}
	pthread_mutex_unlock(&lock);
	return d;
}

static void put_device(struct ibv_device *device)
{
	struct fake_device *f = (struct fake_device *)device;
	struct object **o, *gone;

	pthread_mutex_lock(&lock);
	o = find(FAKE_DEVICE, f);
	if (!o)
		die("%s: %p is no living device of mine", __func__, (void *)f);
	if (!--f->refs) {
		gone = *o;
		*o = gone->next;
		free(gone);
		memset(f, 0x55, sizeof(*f));
		f->refs = 0;
	}
	pthread_mutex_unlock(&lock);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;

	if (num_devices)
		*num_devices = 0;
	ENTER_OR(NULL, num_devices);
	list = make(FAKE_LIST, (FAKE_DEVICES + 1) * sizeof(*list));
	for (int i = 0; i < FAKE_DEVICES; i++)
		list[i] = get_device(i);
	if (num_devices)
		*num_devices = FAKE_DEVICES;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	OWN(LIST, list);
	ENTER(list);
	for (int i = 0; list[i]; i++)
		put_device(list[i]);
	DESTROY(LIST, list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	OWN(DEVICE, device);
	ENTER(device);
	return htonl((uint32_t)((struct fake_device *)device)->number + 0x1000);
}

int ibv_get_device_index(struct ibv_device *device)
{
	OWN(DEVICE, device);
	ENTER(device);
	return ((struct fake_device *)device)->number + 10;
}

/* --- contexts --- */

static void init_context(struct verbs_context *v);

void (*fake_prepare)(struct verbs_context *ctx);
void (*fake_importing)(void);

static struct ibv_context *open_device(struct ibv_device *device)
{
	struct verbs_context *v = calloc(1, sizeof(*v));
	int n = ((struct fake_device *)device)->number;

	if (!v)
		die("no memory");
	v->context.device = get_device(n);
	v->context.cmd_fd = 100 + n;
	v->context.async_fd = open_fd();
	v->context.num_comp_vectors = 3 + n;
	init_context(v);
	if (fake_prepare)
		fake_prepare(v);
	pthread_mutex_lock(&lock);
	add(FAKE_CONTEXT, &v->context);
	pthread_mutex_unlock(&lock);
	return &v->context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	OWN(DEVICE, device);
	ENTER_OR(NULL, device);
	return open_device(device);
}

int ibv_close_device(struct ibv_context *ctx)
{
	struct ibv_device *device;

	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx);
	device = ctx->device;
	close(ctx->async_fd);
	forget(FAKE_CONTEXT, ctx, __func__);
	free(CONTAINER(ctx, struct verbs_context, context));
	put_device(device);
	return 0;
}

/* libibverbs calls these two by their names, too */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *ctx;
	struct ibv_device **list;

	ENTER_OR(NULL, cmd_fd);
	list = ibv_get_device_list(NULL);
	if (!list)
		return NULL;
	if (fake_importing)
		fake_importing();
	ctx = ibv_open_device(list[1]);
	ibv_free_device_list(list);
	return ctx;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct item item;

	OWN(CONTEXT, ctx);
	ENTER_OR(-1, ctx);
	if (!get(&async_events, ctx, &item)) {
		errno = EAGAIN;
		return -1;
	}
	unring(ctx->async_fd);
	*event = item.event;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		OWN(CQ, event->element.cq);
		ENTER(event->element.cq, event->event_type);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		OWN(QP, event->element.qp);
		ENTER(event->element.qp, event->event_type);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		OWN(SRQ, event->element.srq);
		ENTER(event->element.srq, event->event_type);
		break;
	case IBV_EVENT_WQ_FATAL:
		OWN(WQ, event->element.wq);
		ENTER(event->element.wq, event->event_type);
		break;
	default:
		ENTER(event->element.port_num, event->event_type);
	}
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, attr);
	memset(attr, 0, sizeof(*attr));
	attr->max_qp = 77;
	return 0;
}

static int query_device_ex(struct ibv_context *ctx,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, input, attr, size);
	memset(attr, 0, size);
	attr->orig_attr.max_qp = 78;
	return 0;
}

static int query_rt_values(struct ibv_context *ctx,
			   struct ibv_values_ex *values)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, values);
	values->raw_clock.tv_sec = 5;
	return 0;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, port_num, attr);
	((struct ibv_port_attr *)attr)->lid = port_num;
	return 0;
}

static int query_port(struct ibv_context *ctx, uint8_t port_num,
		      struct ibv_port_attr *attr, size_t len)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, port_num, attr, len);
	memset(attr, 0, len);
	attr->lid = (uint16_t)(port_num + 50);
	return 0;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port_num, int index,
		  union ibv_gid *gid)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(-1, ctx, port_num, index, gid);
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[15] = (uint8_t)index;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port_num,
		      uint32_t gid_index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, port_num, gid_index, entry, flags, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx,
			     struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(-errno, ctx, entries, max_entries, flags, entry_size);
	return 9;
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index,
		   __be16 *pkey)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(-1, ctx, port_num, index, pkey);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port_num, __be16 pkey)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(-1, ctx, port_num, pkey);
	return 6;
}

/* --- objects without shadows --- */

#define MAKE_PLAIN(kind, type, function, attr_type)                     \
	static type *function(struct ibv_context *ctx, attr_type *attr) \
	{                                                               \
		type *p;                                                \
                                                                        \
		OWN(CONTEXT, ctx);                                      \
		ENTER_OR(NULL, ctx, attr);                              \
		p = make(FAKE_##kind, sizeof(*p));                      \
		p->context = ctx;                                       \
		return p;                                               \
	}
#define DESTROY_PLAIN(kind, type, function) \
	static int function(type *p)        \
	{                                   \
		OWN(kind, p);               \
		ENTER_ERR(p);               \
		OWN(CONTEXT, p->context);   \
		DESTROY(kind, p);           \
		return 0;                   \
	}
MAKE_PLAIN(XRCD, struct ibv_xrcd, open_xrcd, struct ibv_xrcd_init_attr)
DESTROY_PLAIN(XRCD, struct ibv_xrcd, close_xrcd)
MAKE_PLAIN(TD, struct ibv_td, alloc_td, struct ibv_td_init_attr)
DESTROY_PLAIN(TD, struct ibv_td, dealloc_td)
MAKE_PLAIN(DM, struct ibv_dm, alloc_dm, struct ibv_alloc_dm_attr)
DESTROY_PLAIN(DM, struct ibv_dm, free_dm)
MAKE_PLAIN(COUNTERS, struct ibv_counters, create_counters,
	   struct ibv_counters_init_attr)
DESTROY_PLAIN(COUNTERS, struct ibv_counters, destroy_counters)
MAKE_PLAIN(ACTION, struct ibv_flow_action, create_flow_action_esp,
	   struct ibv_flow_action_esp_attr)
DESTROY_PLAIN(ACTION, struct ibv_flow_action, destroy_flow_action)
MAKE_PLAIN(RWQ, struct ibv_rwq_ind_table, make_rwq_ind_table,
	   struct ibv_rwq_ind_table_init_attr)
DESTROY_PLAIN(RWQ, struct ibv_rwq_ind_table, destroy_rwq_ind_table)
DESTROY_PLAIN(FLOW, struct ibv_flow, destroy_flow)
DESTROY_PLAIN(WQ, struct ibv_wq, destroy_wq)

struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t dm_handle)
{
	struct ibv_dm *dm;

	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx, dm_handle);
	dm = make(FAKE_DM, sizeof(*dm));
	dm->context = ctx;
	return dm;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	ENTER(dm);
	DESTROY(DM, dm);
}

static int modify_flow_action_esp(struct ibv_flow_action *action,
				  struct ibv_flow_action_esp_attr *attr)
{
	OWN(ACTION, action);
	ENTER_ERR(action, attr);
	return 0;
}

static int read_counters(struct ibv_counters *counters, uint64_t *value,
			 uint32_t n, uint32_t flags)
{
	OWN(COUNTERS, counters);
	ENTER_ERR(counters, value, n, flags);
	return 0;
}

static int attach_counters_point_flow(struct ibv_counters *counters,
				      struct ibv_counter_attach_attr *attr,
				      struct ibv_flow *flow)
{
	OWN(COUNTERS, counters);
	OWN_OR_NULL(FLOW, flow);
	ENTER_ERR(counters, attr, flow);
	return 0;
}

static struct ibv_flow *create_flow(struct ibv_qp *qp,
				    struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;

	OWN(QP, qp);
	ENTER_OR(NULL, qp, attr);
	flow = make(FAKE_FLOW, sizeof(*flow));
	flow->context = qp->context;
	return flow;
}

static int wq_post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	OWN(WQ, wq);
	ENTER_ERR(wq, wr, bad_wr);
	return 0;
}

static struct ibv_wq *create_wq(struct ibv_context *ctx,
				struct ibv_wq_init_attr *attr)
{
	struct ibv_wq *wq;

	OWN(CONTEXT, ctx);
	OWN(PD, attr->pd);
	OWN(CQ, attr->cq);
	KEEP(wq, *attr);
	attr->max_wr *= 2;
	attr->max_sge *= 2;
	ENTER_OR(NULL, ctx);
	wq = make(FAKE_WQ, sizeof(*wq));
	wq->context = ctx;
	wq->pd = attr->pd;
	wq->cq = attr->cq;
	wq->wq_num = new_handle();
	wq->post_recv = wq_post_recv;
	return wq;
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	OWN(WQ, wq);
	ENTER_ERR(wq, attr);
	return 0;
}

static struct ibv_rwq_ind_table *
create_rwq_ind_table(struct ibv_context *ctx,
		     struct ibv_rwq_ind_table_init_attr *attr)
{
	for (int i = 0; i < 1 << attr->log_ind_tbl_size; i++)
		OWN(WQ, attr->ind_tbl[i]);
	return make_rwq_ind_table(ctx, attr);
}

/* --- PDs --- */

struct fake_pd {
	struct ibv_pd pd;
	bool imported;
	struct ibv_parent_domain_init_attr parent;
};

static struct fake_pd *new_pd(struct ibv_context *ctx)
{
	struct fake_pd *pd = make(FAKE_PD, sizeof(*pd));

	pd->pd.context = ctx;
	pd->pd.handle = new_handle();
	return pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx);
	return &new_pd(ctx)->pd;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t pd_handle)
{
	struct fake_pd *pd;

	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx, pd_handle);
	pd = new_pd(ctx);
	pd->imported = true;
	pd->pd.handle = pd_handle;
	return &pd->pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	OWN(PD, pd);
	ENTER(pd);
	if (!((struct fake_pd *)pd)->imported)
		die("%s: this PD was not imported", __func__);
	DESTROY(PD, pd);
}

static struct ibv_pd *
alloc_parent_domain(struct ibv_context *ctx,
		    struct ibv_parent_domain_init_attr *attr)
{
	struct fake_pd *pd;

	OWN(CONTEXT, ctx);
	OWN(PD, attr->pd);
	OWN_OR_NULL(TD, attr->td);
	KEEP(pd, *attr);
	ENTER_OR(NULL, ctx);
	pd = new_pd(ctx);
	pd->parent = *attr;
	return &pd->pd;
}

void *fake_parent_alloc(struct ibv_pd *real, size_t size, size_t align,
			uint64_t type)
{
	struct fake_pd *pd = (struct fake_pd *)real;

	OWN(PD, real);
	return pd->parent.alloc(real, pd->parent.pd_context, size, align, type);
}

void fake_parent_free(struct ibv_pd *real, void *ptr, uint64_t type)
{
	struct fake_pd *pd = (struct fake_pd *)real;

	OWN(PD, real);
	pd->parent.free(real, pd->parent.pd_context, ptr, type);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	OWN(PD, pd);
	ENTER_ERR(pd);
	DESTROY(PD, pd);
	return 0;
}

/* --- MRs and MWs --- */

static struct ibv_mr *new_mr(struct ibv_pd *pd, void *addr, size_t length)
{
	struct ibv_mr *mr = make(FAKE_MR, sizeof(*mr));

	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = new_handle();
	mr->lkey = mr->handle << 8;
	mr->rkey = mr->handle << 8 | 1;
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, addr, length, access);
	return new_mr(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, addr, length, iova, access);
	return new_mr(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, addr, length, iova, access);
	return new_mr(pd, addr, length);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, offset, length, iova, fd, access);
	return new_mr(pd, (void *)(uintptr_t)offset, length);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, mr_handle);
	return new_mr(pd, NULL, 0);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	ENTER(mr);
	DESTROY(MR, mr);
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				uint64_t dm_offset, size_t length,
				unsigned int access)
{
	OWN(PD, pd);
	OWN(DM, dm);
	ENTER_OR(NULL, pd, dm, dm_offset, length, access);
	return new_mr(pd, NULL, length);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd);
	return new_mr(pd, NULL, 0);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	int err;

	OWN(MR, mr);
	if (flags & IBV_REREG_MR_CHANGE_PD)
		OWN(PD, pd);
	err = ENTER(mr, flags, pd, addr, length, access);
	if (err && err != IBV_REREG_MR_ERR_DO_FORK_OLD)
		return err;
	mr->lkey += 0x10;
	mr->rkey += 0x10;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return err;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	OWN(MR, mr);
	ENTER_ERR(mr);
	DESTROY(MR, mr);
	return 0;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sges)
{
	OWN(PD, pd);
	ENTER_ERR(pd, advice, flags, sg_list, num_sges);
	return 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw;

	OWN(PD, pd);
	ENTER_OR(NULL, pd, type);
	mw = make(FAKE_MW, sizeof(*mw));
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->handle = new_handle();
	mw->rkey = mw->handle << 8;
	return mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	OWN(MW, mw);
	ENTER_ERR(mw);
	DESTROY(MW, mw);
	return 0;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *bind)
{
	OWN(QP, qp);
	OWN(MW, mw);
	OWN_OR_NULL(MR, bind->bind_info.mr);
	KEEP(bind, *bind);
	ENTER_ERR(qp, mw);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	return 0;
}

/* --- AHs --- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;

	OWN(PD, pd);
	ENTER_OR(NULL, pd, attr->dlid, attr->port_num);
	ah = make(FAKE_AH, sizeof(*ah));
	ah->context = pd->context;
	ah->pd = pd;
	ah->handle = new_handle();
	return ah;
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, port_num, wc, grh);
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->port_num = port_num;
	return 0;
}

/* libibverbs calls these two by their names, too */
struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;
	int err;

	OWN(PD, pd);
	ENTER_OR(NULL, pd, wc, grh, port_num);
	err = ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr);
	if (err) {
		errno = err;
		return NULL;
	}
	return ibv_create_ah(pd, &attr);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	OWN(AH, ah);
	ENTER_ERR(ah);
	DESTROY(AH, ah);
	return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, attr, eth_mac, vid);
	return 0;
}

/* --- channels and CQs --- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel;

	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx);
	channel = make(FAKE_CHANNEL, sizeof(*channel));
	channel->context = ctx;
	channel->fd = open_fd();
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	OWN(CHANNEL, channel);
	ENTER_ERR(channel);
	close(channel->fd);
	DESTROY(CHANNEL, channel);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	struct item item;

	OWN(CHANNEL, channel);
	ENTER_OR(-1, channel);
	if (!get(&cq_events, channel, &item)) {
		errno = EAGAIN;
		return -1;
	}
	unring(channel->fd);
	*cq = item.event.element.cq;
	OWN(CQ, *cq);
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	OWN(CQ, cq);
	ENTER(cq, nevents);
}

struct fake_cq {
	struct ibv_cq_ex ex;
	bool extended, polling;
	int armed; /* 1: for any, 2: for what is solicited or has failed */
	struct ibv_wc wc;
};

static struct fake_cq *new_cq(struct ibv_context *ctx, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel)
{
	struct fake_cq *cq = make(FAKE_CQ, sizeof(*cq));

	cq->ex.context = ctx;
	cq->ex.channel = channel;
	cq->ex.cq_context = cq_context;
	cq->ex.handle = new_handle();
	cq->ex.cqe = cqe + 1;
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	OWN(CONTEXT, ctx);
	OWN_OR_NULL(CHANNEL, channel);
	KEEP(cqs, fake_last.cqs + 1);
	ENTER_OR(NULL, ctx, cqe, channel, comp_vector);
	return ibv_cq_ex_to_cq(&new_cq(ctx, cqe, cq_context, channel)->ex);
}

static struct fake_cq *ex_of(struct ibv_cq_ex *ex, const char *call)
{
	struct fake_cq *cq = (struct fake_cq *)ex;

	own(FAKE_CQ, ex, call);
	if (!cq->extended)
		die("%s: a plain CQ", call);
	return cq;
}

static int take(struct fake_cq *cq)
{
	struct item item;

	if (!get(&completions, cq, &item))
		return ENOENT;
	cq->polling = true;
	cq->wc = item.wc;
	cq->ex.wr_id = item.wc.wr_id;
	cq->ex.status = item.wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER_ERR(ex, attr);
	if (cq->polling)
		die("start_poll: twice");
	return take(cq);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER_ERR(ex);
	if (!cq->polling)
		die("next_poll: without start");
	return take(cq);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER(ex);
	if (!cq->polling)
		die("end_poll: without start");
	cq->polling = false;
}

#define READ(type, name, value)                           \
	static type name(struct ibv_cq_ex *ex)            \
	{                                                 \
		struct fake_cq *cq = ex_of(ex, __func__); \
                                                          \
		ENTER(ex);                                \
		return (type)(value);                     \
	}
READ(enum ibv_wc_opcode, read_opcode, cq->wc.opcode)
READ(uint32_t, read_vendor_err, cq->wc.vendor_err)
READ(uint32_t, read_byte_len, cq->wc.byte_len)
READ(__be32, read_imm_data, cq->wc.imm_data)
READ(uint32_t, read_qp_num, cq->wc.qp_num)
READ(uint32_t, read_src_qp, cq->wc.src_qp)
READ(unsigned int, read_wc_flags, cq->wc.wc_flags)
READ(uint32_t, read_slid, cq->wc.slid)
READ(uint8_t, read_sl, cq->wc.sl)
READ(uint8_t, read_dlid_path_bits, cq->wc.dlid_path_bits)
/* the rest is made of the id, each in its own way */
READ(uint64_t, read_completion_ts, cq->wc.wr_id << 32 | 1)
READ(uint16_t, read_cvlan, cq->wc.wr_id + 2)
READ(uint32_t, read_flow_tag, cq->wc.wr_id + 3)
READ(uint64_t, read_completion_wallclock_ns, cq->wc.wr_id << 32 | 4)

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER(ex, info);
	info->tag = cq->wc.wr_id + 5;
	info->priv = (uint32_t)cq->wc.wr_id + 6;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *ctx,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct fake_cq *cq;
	struct ibv_cq_ex *ex;

	OWN(CONTEXT, ctx);
	OWN_OR_NULL(CHANNEL, attr->channel);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		OWN(PD, attr->parent_domain);
	KEEP(cq, *attr);
	KEEP(cqs, fake_last.cqs + 1);
	ENTER_OR(NULL, ctx);
	cq = new_cq(ctx, (int)attr->cqe, attr->cq_context, attr->channel);
	cq->extended = true;
	ex = &cq->ex;
	ex->comp_mask = 0x70;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
#define FOR(flag, op)                                  \
	do {                                           \
		if (attr->wc_flags & IBV_WC_EX_##flag) \
			ex->op = op;                   \
	} while (0)
	FOR(WITH_BYTE_LEN, read_byte_len);
	FOR(WITH_IMM, read_imm_data);
	FOR(WITH_QP_NUM, read_qp_num);
	FOR(WITH_SRC_QP, read_src_qp);
	FOR(WITH_SLID, read_slid);
	FOR(WITH_SL, read_sl);
	FOR(WITH_DLID_PATH_BITS, read_dlid_path_bits);
	FOR(WITH_COMPLETION_TIMESTAMP, read_completion_ts);
	FOR(WITH_CVLAN, read_cvlan);
	FOR(WITH_FLOW_TAG, read_flow_tag);
	FOR(WITH_TM_INFO, read_tm_info);
	FOR(WITH_COMPLETION_TIMESTAMP_WALLCLOCK, read_completion_wallclock_ns);
#undef FOR
	return ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	OWN(CQ, cq);
	ENTER_ERR(cq, cqe);
	cq->cqe = cqe + 1;
	return 0;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	OWN(CQ, cq);
	ENTER_ERR(cq, attr);
	KEEP(moderate, attr->moderate);
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	OWN(CQ, cq);
	ENTER_ERR(cq);
	purge(&cq_events, cq);
	purge(&completions, cq);
	DESTROY(CQ, cq);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct item item;
	int n;

	OWN(CQ, cq);
	ENTER_OR(-1, cq, num_entries, wc);
	for (n = 0; n < num_entries && get(&completions, cq, &item); n++)
		wc[n] = item.wc;
	return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	OWN(CQ, cq);
	ENTER_ERR(cq, solicited_only);
	pthread_mutex_lock(&lock);
	((struct fake_cq *)cq)->armed = solicited_only ? 2 : 1;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- SRQs --- */

/* RECVs that wait for a message */
struct recvs {
	struct fake_recv *first, **end;
	unsigned int n;
};

struct fake_srq {
	struct ibv_srq srq;
	struct recvs recvs;
	uint32_t limit;
};

static void drop_recvs(struct recvs *r)
{
	struct fake_recv *gone;

	while ((gone = r->first)) {
		r->first = gone->next;
		free(gone);
	}
	r->n = 0;
}

static struct ibv_srq *new_srq(struct ibv_context *ctx, void *srq_context,
			       struct ibv_pd *pd)
{
	struct fake_srq *f = make(FAKE_SRQ, sizeof(*f));
	struct ibv_srq *srq = &f->srq;

	srq->context = ctx;
	srq->srq_context = srq_context;
	srq->pd = pd;
	srq->handle = new_handle();
	return srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex asked = { .attr = attr->attr, .pd = pd };

	OWN(PD, pd);
	KEEP(srq, asked);
	attr->attr.max_wr += 100;
	attr->attr.max_sge += 100;
	ENTER_OR(NULL, pd);
	return new_srq(pd->context, attr->srq_context, pd);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *ctx,
				     struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_pd *pd = NULL;

	OWN(CONTEXT, ctx);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) {
		OWN(PD, attr->pd);
		pd = attr->pd;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)
		OWN(XRCD, attr->xrcd);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		OWN(CQ, attr->cq);
	KEEP(srq, *attr);
	attr->attr.max_wr += 100;
	attr->attr.max_sge += 100;
	ENTER_OR(NULL, ctx);
	return new_srq(ctx, attr->srq_context, pd);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		   int attr_mask)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq, attr, attr_mask);
	if (attr_mask & IBV_SRQ_LIMIT)
		((struct fake_srq *)srq)->limit = attr->srq_limit;
	return 0;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq, attr);
	attr->max_wr = 31;
	attr->srq_limit = ((struct fake_srq *)srq)->limit;
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq);
	drop_recvs(&((struct fake_srq *)srq)->recvs);
	purge(&async_events, srq);
	DESTROY(SRQ, srq);
	return 0;
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq, srq_num);
	*srq_num = 4711;
	return 0;
}

/* --- posting --- */

struct fake_posted fake_posted[FAKE_POSTED];
unsigned int fake_nposted, fake_posts, fake_most;
static int bad_number = -1;
static bool tell_bad;

void fake_forget(int bad, bool tell)
{
	memset(fake_posted, 0, sizeof(fake_posted));
	fake_nposted = 0;
	fake_posts = 0;
	fake_most = 0;
	bad_number = bad;
	tell_bad = tell;
}

/* where the next request goes, or NULL if it is to fail; with the lock */
static struct fake_posted *slot(void *queue, unsigned int in_call)
{
	struct fake_posted *p = &fake_posted[fake_nposted % FAKE_POSTED];

	if ((int)fake_nposted == bad_number)
		return NULL;
	fake_nposted++;
	if (in_call > fake_most)
		fake_most = in_call;
	p->queue = queue;
	return p;
}

static void check_wr(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->qp_type == IBV_QPT_UD)
		own(FAKE_AH, wr->wr.ud.ah, "post_send");
	if (wr->opcode == IBV_WR_BIND_MW) {
		own(FAKE_MW, wr->bind_mw.mw, "post_send");
		if (wr->bind_mw.bind_info.mr)
			own(FAKE_MR, wr->bind_mw.bind_info.mr, "post_send");
	}
}

/* each kind of request has wr_id and next; @member is where it is remembered */
#define POST_ALL(queue, wr, bad, member)        \
	do {                                    \
		unsigned int n_ = 0;            \
		struct fake_posted *p_ = NULL;  \
                                                \
		pthread_mutex_lock(&lock);      \
		fake_posts++;                   \
		for (; wr; wr = wr->next) {     \
			p_ = slot(queue, ++n_); \
			if (!p_)                \
				break;          \
			p_->member = *wr;       \
		}                               \
		pthread_mutex_unlock(&lock);    \
		if (wr) {                       \
			if (tell_bad)           \
				*(bad) = wr;    \
			return ENOMEM;          \
		}                               \
	} while (0)

/* --- a provider that works --- */

enum {
	BATCH = 32
};

struct fake_qp {
	struct ibv_qp_ex ex;
	bool extended;

	struct ibv_qp_cap cap;
	bool sq_sig_all;
	unsigned int access;
	struct fake_sent **sent; /* all there were */
	unsigned int n, room, finished, fulls;
	int refuse; /* the number of the one to refuse, or -1 */
	int refuse_err;

	struct recvs recvs;
	struct ibv_qp_attr attr; /* all that was set */
	bool last_wqe;

	pthread_mutex_t batch_lock; /* from start to complete or abort */
	struct fake_sent batch[BATCH];
	unsigned int in_batch;
};

static bool works;
static unsigned int flushes = UINT_MAX;
void (*fake_posted_hook)(struct ibv_qp *real, const struct fake_sent *sent);

void fake_work(void)
{
	works = true;
}

void fake_flush(unsigned int most)
{
	pthread_mutex_lock(&lock);
	flushes = most;
	pthread_mutex_unlock(&lock);
}

/* with the lock */
static unsigned int completions_of(const void *cq)
{
	unsigned int n = 0;

	for (struct item *i = completions; i; i = i->next)
		n += i->of == cq;
	return n;
}

unsigned int fake_completions(const struct ibv_cq *real)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = completions_of(real);
	pthread_mutex_unlock(&lock);
	return n;
}

/* with the lock: it was armed */
static void put_event(struct fake_cq *f)
{
	struct item **end = &cq_events, *i = calloc(1, sizeof(*i));

	if (!i)
		die("no memory");
	f->armed = 0;
	i->of = f->ex.channel;
	i->event.element.cq = ibv_cq_ex_to_cq(&f->ex);
	while (*end)
		end = &(*end)->next;
	*end = i;
	ring(f->ex.channel->fd);
}

/* with the lock */
static void put_completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct item **end = &completions, *i = calloc(1, sizeof(*i));
	struct fake_cq *f = (struct fake_cq *)cq;

	if (!i)
		die("no memory");
	if (completions_of(cq) >= (unsigned int)cq->cqe)
		die("CQ %p is overrun", (void *)cq);
	i->of = cq;
	i->wc = *wc;
	while (*end)
		end = &(*end)->next;
	*end = i;
	if (f->ex.channel &&
	    (f->armed == 1 || (f->armed && wc->status != IBV_WC_SUCCESS)))
		put_event(f);
}

unsigned int fake_sends(const struct ibv_qp *real)
{
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	n = ((const struct fake_qp *)real)->n;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int fake_waiting(const struct ibv_qp *real)
{
	const struct fake_qp *f = (const struct fake_qp *)real;
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	n = f->n - f->finished;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int fake_fulls(const struct ibv_qp *real)
{
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	n = ((const struct fake_qp *)real)->fulls;
	pthread_mutex_unlock(&lock);
	return n;
}

const struct fake_sent *fake_sent(const struct ibv_qp *real, unsigned int n)
{
	const struct fake_qp *f = (const struct fake_qp *)real;
	const struct fake_sent *sent;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	sent = n < f->n ? f->sent[n] : NULL;
	pthread_mutex_unlock(&lock);
	return sent;
}

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

unsigned int fake_finish(struct ibv_qp *real, unsigned int most,
			 enum ibv_wc_status status)
{
	struct fake_qp *f = (struct fake_qp *)real;
	struct fake_sent *sent;
	struct ibv_wc wc;
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	for (n = 0; n < most && f->finished < f->n; n++) {
		sent = f->sent[f->finished++];
		wc = (struct ibv_wc){ .wr_id = sent->wr.wr_id,
				      .status = status,
				      .opcode = opcode_of(sent->wr.opcode),
				      .qp_num = real->qp_num };
		if (sent->signaled || status != IBV_WC_SUCCESS)
			put_completion(real->send_cq, &wc);
	}
	pthread_mutex_unlock(&lock);
	return n;
}

void fake_received(struct ibv_qp *real, uint64_t wr_id, uint32_t byte_len)
{
	struct ibv_wc wc = { .wr_id = wr_id,
			     .opcode = IBV_WC_RECV,
			     .byte_len = byte_len,
			     .qp_num = real->qp_num };

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	put_completion(real->recv_cq, &wc);
	pthread_mutex_unlock(&lock);
}

static struct recvs *recvs_of(const struct ibv_qp *qp)
{
	return qp->srq ? &((struct fake_srq *)qp->srq)->recvs
		       : &((struct fake_qp *)qp)->recvs;
}

/* with the lock: the oldest one completes */
static void finish_recv(struct ibv_qp *real, struct recvs *r,
			enum ibv_wc_status status, uint32_t byte_len)
{
	struct fake_recv *f = r->first;
	struct ibv_wc wc = { .wr_id = f->wr_id,
			     .status = status,
			     .opcode = IBV_WC_RECV,
			     .byte_len = byte_len,
			     .qp_num = real->qp_num };

	r->first = f->next;
	r->n--;
	free(f);
	put_completion(real->recv_cq, &wc);
}

void fake_receive(struct ibv_qp *real, uint32_t byte_len)
{
	OWN(QP, real);
	pthread_mutex_lock(&lock);
	if (!recvs_of(real)->first)
		die("nothing is posted to receive");
	finish_recv(real, recvs_of(real), IBV_WC_SUCCESS, byte_len);
	pthread_mutex_unlock(&lock);
}

void fake_drop(struct ibv_qp *real)
{
	OWN(QP, real);
	pthread_mutex_lock(&lock);
	finish_recv(real, recvs_of(real), IBV_WC_WR_FLUSH_ERR, 0);
	pthread_mutex_unlock(&lock);
}

const struct fake_recv *fake_recvs(const struct ibv_qp *real)
{
	OWN(QP, real);
	return recvs_of(real)->first;
}

static bool tells = true;
static struct ibv_recv_wr *tells_what;

void fake_tell(bool right, struct ibv_recv_wr *what)
{
	tells = right;
	tells_what = what;
}

static int queue_recvs(struct recvs *r, struct ibv_recv_wr *wr, uint32_t most,
		       struct ibv_recv_wr **bad_wr)
{
	struct fake_recv *f, **end;
	int err = 0;

	pthread_mutex_lock(&lock);
	fake_posts++;
	for (; wr && !err; wr = wr->next) {
		if (r->n >= most) {
			*bad_wr = tells ? wr : tells_what;
			err = ENOMEM;
			break;
		}
		f = calloc(1, sizeof(*f));
		if (!f || wr->num_sge > 4)
			die("post_recv: no memory, or too many SGEs");
		f->wr_id = wr->wr_id;
		f->num_sge = wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++)
			f->sge[i] = wr->sg_list[i];
		for (end = &r->first; *end; end = &(*end)->next)
			;
		*end = f;
		r->n++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* to ERR: what is posted is flushed, but what is posted then waits for the next time */
static void flush(struct ibv_qp *real)
{
	struct ibv_async_event last = {
		.event_type = IBV_EVENT_QP_LAST_WQE_REACHED,
		.element.qp = real,
	};
	struct fake_qp *f = (struct fake_qp *)real;

	fake_finish(real, UINT32_MAX, IBV_WC_WR_FLUSH_ERR);
	pthread_mutex_lock(&lock);
	for (; !real->srq && f->recvs.first && flushes; flushes--)
		finish_recv(real, &f->recvs, IBV_WC_WR_FLUSH_ERR, 0);
	pthread_mutex_unlock(&lock);
	if (real->srq && !f->last_wqe) {
		f->last_wqe = true;
		fake_async_event(real->context, &last);
	}
}

void fake_refuse(struct ibv_qp *real, unsigned int n, int err)
{
	struct fake_qp *f = (struct fake_qp *)real;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	f->refuse = (int)(f->n + n);
	f->refuse_err = err;
	pthread_mutex_unlock(&lock);
}

static struct fake_sent copy_of(const struct ibv_send_wr *wr)
{
	struct fake_sent sent = { .wr = *wr };
	const struct ibv_sge *sge = wr->sg_list;

	if (wr->num_sge < 0 || wr->num_sge > FAKE_SGES)
		die("post_send: %d SGEs", wr->num_sge);
	for (int i = 0; i < wr->num_sge; i++) {
		sent.sge[i] = sge[i];
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		if (sge[i].length > FAKE_INLINE - sent.bytes)
			die("post_send: too much inline data");
		memcpy(sent.data + sent.bytes, (void *)(uintptr_t)sge[i].addr,
		       sge[i].length);
		sent.bytes += sge[i].length;
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		sent.mw_rkey = wr->bind_mw.mw->rkey;
	sent.wr.next = NULL;
	sent.wr.sg_list = NULL;
	return sent;
}

/* with the lock */
static int enqueue(struct fake_qp *f, const struct fake_sent *sent)
{
	struct fake_sent *copy;

	if ((int)f->n == f->refuse) {
		f->refuse = -1;
		return f->refuse_err;
	}
	if (f->n - f->finished >= f->cap.max_send_wr) {
		f->fulls++;
		return ENOMEM;
	}
	if (f->n == f->room) {
		f->room = f->room ? 2 * f->room : 16;
		f->sent = realloc(f->sent, f->room * sizeof(f->sent[0]));
	}
	copy = malloc(sizeof(*copy));
	if (!f->sent || !copy)
		die("no memory");
	*copy = *sent;
	copy->signaled =
		f->sq_sig_all || sent->wr.send_flags & IBV_SEND_SIGNALED;
	f->sent[f->n++] = copy;
	return 0;
}

static int work(struct fake_qp *f, struct ibv_send_wr *wr,
		struct ibv_send_wr **bad_wr)
{
	struct fake_sent sent;
	int err;

	for (; wr; wr = wr->next) {
		sent = copy_of(wr);
		pthread_mutex_lock(&lock);
		err = enqueue(f, &sent);
		pthread_mutex_unlock(&lock);
		if (err) {
			*bad_wr = wr;
			return err;
		}
		if (fake_posted_hook)
			fake_posted_hook(&f->ex.qp_base, &sent);
	}
	return 0;
}

static void start_batch(struct ibv_qp_ex *ex)
{
	struct fake_qp *f = (struct fake_qp *)ex;

	if (works) {
		pthread_mutex_lock(&f->batch_lock);
		f->in_batch = 0;
	}
}

static void add_to_batch(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct fake_qp *f = (struct fake_qp *)ex;
	struct fake_sent *sent;

	if (!works)
		return;
	if (f->in_batch == BATCH)
		die("a batch of too many");
	sent = &f->batch[f->in_batch++];
	*sent = (struct fake_sent){ .wr = *wr };
	sent->wr.wr_id = ex->wr_id;
	sent->wr.send_flags = ex->wr_flags;
}

static void set_batch_sge(struct ibv_qp_ex *ex, const struct ibv_sge *sge)
{
	struct fake_qp *f = (struct fake_qp *)ex;

	if (works) {
		f->batch[f->in_batch - 1].sge[0] = *sge;
		f->batch[f->in_batch - 1].wr.num_sge = 1;
	}
}

static int end_batch(struct ibv_qp_ex *ex, bool post)
{
	struct fake_qp *f = (struct fake_qp *)ex;
	int err = 0;

	if (!works)
		return 0;
	pthread_mutex_lock(&lock);
	if (post && f->in_batch > f->cap.max_send_wr - (f->n - f->finished))
		err = ENOMEM;
	for (unsigned int i = 0; post && !err && i < f->in_batch; i++)
		err = enqueue(f, &f->batch[i]);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&f->batch_lock);
	return err;
}

static void free_work(struct ibv_qp *qp)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	for (unsigned int i = 0; i < f->n; i++)
		free(f->sent[i]);
	free(f->sent);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	int err;

	OWN(QP, qp);
	err = ENTER(qp, wr, bad_wr);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	for (struct ibv_send_wr *w = wr; w; w = w->next) {
		check_wr(qp, w);
		if (w->opcode == IBV_WR_BIND_MW)
			KEEP(mw_rkey, w->bind_mw.mw->rkey);
	}
	if (works)
		return work((struct fake_qp *)qp, wr, bad_wr);
	POST_ALL(qp, wr, bad_wr, send);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	int err;

	OWN(QP, qp);
	err = ENTER(qp, wr, bad_wr);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	if (works)
		return queue_recvs(&((struct fake_qp *)qp)->recvs, wr,
				   ((struct fake_qp *)qp)->cap.max_recv_wr,
				   bad_wr);
	POST_ALL(qp, wr, bad_wr, recv);
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	int err;

	OWN(SRQ, srq);
	err = ENTER(srq, wr, bad_wr);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	if (works)
		return queue_recvs(&((struct fake_srq *)srq)->recvs, wr, 1000,
				   bad_wr);
	POST_ALL(srq, wr, bad_wr, recv);
	return 0;
}

static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr,
			struct ibv_ops_wr **bad_wr)
{
	OWN(SRQ, srq);
	ENTER(srq, wr, bad_wr);
	POST_ALL(srq, wr, bad_wr, op);
	return 0;
}

/* --- QPs --- */

static struct fake_qp *new_qp(struct ibv_context *ctx,
			      const struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *f = make(FAKE_QP, sizeof(*f));
	struct ibv_qp *qp = &f->ex.qp_base;

	qp->context = ctx;
	qp->qp_context = attr->qp_context;
	qp->pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	qp->state = IBV_QPS_RESET;
	qp->handle = new_handle();
	qp->qp_num = 0x10000 + qp->handle;
	f->cap = attr->cap;
	f->sq_sig_all = attr->sq_sig_all;
	f->refuse = -1;
	pthread_mutex_init(&f->batch_lock, NULL);
	return f;
}

static void own_attr(const struct ibv_qp_init_attr *attr, const char *call)
{
	if (attr->send_cq)
		own(FAKE_CQ, attr->send_cq, call);
	if (attr->recv_cq)
		own(FAKE_CQ, attr->recv_cq, call);
	if (attr->srq)
		own(FAKE_SRQ, attr->srq, call);
}

static void grow_cap(struct ibv_qp_cap *cap)
{
	cap->max_send_wr += 10;
	cap->max_recv_wr += 20;
	cap->max_send_sge += 30;
	cap->max_recv_sge += 40;
	cap->max_inline_data += 50;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_ATTR_PD };

	OWN(PD, pd);
	own_attr(attr, __func__);
	memcpy(&ex, attr, sizeof(*attr));
	ex.pd = pd;
	KEEP(qp, ex);
	KEEP(qps, fake_last.qps + 1);
	grow_cap(&attr->cap);
	ENTER_OR(NULL, pd);
	ex.cap = attr->cap;
	return &new_qp(pd->context, &ex)->ex.qp_base;
}

/* calls that begin a request, of which the QP says the id and the flags */
#define BEGIN(ex, ...)                                               \
	do {                                                         \
		OWN(QP, ex);                                         \
		ENTER(ex, (ex)->wr_id, (ex)->wr_flags, __VA_ARGS__); \
	} while (0)
/* calls that do not */
#define GO_ON(...)                  \
	do {                        \
		OWN(QP, ex);        \
		ENTER(__VA_ARGS__); \
	} while (0)

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	BEGIN(ex, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	BEGIN(ex, rkey, remote_addr, add);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	OWN(MW, mw);
	OWN_OR_NULL(MR, info->mr);
	KEEP(info, *info);
	KEEP(mw_rkey, mw->rkey);
	BEGIN(ex, mw, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	BEGIN(ex, invalidate_rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	BEGIN(ex, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	BEGIN(ex, rkey, remote_addr);
	add_to_batch(ex,
		     &(struct ibv_send_wr){ .opcode = IBV_WR_RDMA_WRITE,
					    .wr.rdma = { remote_addr, rkey } });
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	BEGIN(ex, rkey, remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	BEGIN(ex, 0);
	add_to_batch(ex, &(struct ibv_send_wr){ .opcode = IBV_WR_SEND });
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	BEGIN(ex, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	BEGIN(ex, invalidate_rkey);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	BEGIN(ex, hdr, hdr_sz, mss);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	BEGIN(ex, rkey, remote_addr, atomic_wr);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
		     size_t len, uint8_t type, uint8_t level)
{
	BEGIN(ex, rkey, remote_addr, len, type, level);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	OWN(AH, ah);
	GO_ON(ex, ah, remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	GO_ON(ex, remote_srqn);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	GO_ON(ex, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	GO_ON(ex, num_buf, buf_list);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	GO_ON(ex, lkey, addr, length);
	set_batch_sge(ex, &(struct ibv_sge){ addr, length, lkey });
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	GO_ON(ex, num_sge, sg_list);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	GO_ON(ex);
	start_batch(ex);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	int err, failure;

	OWN(QP, ex);
	failure = ENTER(ex);
	err = end_batch(ex, !failure);
	return failure ? failure : err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	GO_ON(ex);
	end_batch(ex, false);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ctx,
				   struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *f;
	struct ibv_qp_ex *ex;

	OWN(CONTEXT, ctx);
	own_attr((struct ibv_qp_init_attr *)attr, __func__);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		OWN(PD, attr->pd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		OWN(XRCD, attr->xrcd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		OWN(RWQ, attr->rwq_ind_tbl);
	KEEP(qp, *attr);
	KEEP(qps, fake_last.qps + 1);
	grow_cap(&attr->cap);
	ENTER_OR(NULL, ctx);
	f = new_qp(ctx, attr);
	f->extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (!f->extended)
		return &f->ex.qp_base;
	ex = &f->ex;
	ex->comp_mask = 0x90;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
#define FOR(flag, op)                                             \
	do {                                                      \
		if (attr->send_ops_flags & IBV_QP_EX_WITH_##flag) \
			ex->op = op;                              \
	} while (0)
	FOR(RDMA_WRITE, wr_rdma_write);
	FOR(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	FOR(SEND, wr_send);
	FOR(SEND_WITH_IMM, wr_send_imm);
	FOR(RDMA_READ, wr_rdma_read);
	FOR(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	FOR(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	FOR(LOCAL_INV, wr_local_inv);
	FOR(BIND_MW, wr_bind_mw);
	FOR(SEND_WITH_INV, wr_send_inv);
	FOR(TSO, wr_send_tso);
	FOR(FLUSH, wr_flush);
	FOR(ATOMIC_WRITE, wr_atomic_write);
#undef FOR
	return &ex->qp_base;
}

static struct ibv_qp *open_qp(struct ibv_context *ctx,
			      struct ibv_qp_open_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *qp;

	OWN(CONTEXT, ctx);
	OWN(XRCD, attr->xrcd);
	KEEP(open, *attr);
	ENTER_OR(NULL, ctx);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		ex.qp_context = attr->qp_context;
	qp = &new_qp(ctx, &ex)->ex.qp_base;
	qp->qp_num = attr->qp_num;
	return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	OWN(QP, qp);
	return f->extended ? &f->ex : NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	OWN(QP, qp);
	ENTER_ERR(qp, attr, attr_mask);
	KEEP(modify, *attr);
	if (attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (attr_mask & IBV_QP_ACCESS_FLAGS)
		f->access = attr->qp_access_flags;
#define SET(bit, member)                               \
	do {                                           \
		if (attr_mask & IBV_QP_##bit)          \
			f->attr.member = attr->member; \
	} while (0)
	SET(PORT, port_num);
	SET(AV, ah_attr);
	SET(PATH_MTU, path_mtu);
	SET(DEST_QPN, dest_qp_num);
	SET(RQ_PSN, rq_psn);
	SET(SQ_PSN, sq_psn);
	SET(TIMEOUT, timeout);
	SET(MIN_RNR_TIMER, min_rnr_timer);
#undef SET
	if (works && attr_mask & IBV_QP_STATE && qp->state == IBV_QPS_ERR)
		flush(qp);
	if (attr_mask & IBV_QP_STATE && qp->state == IBV_QPS_RESET)
		drop_recvs(&f->recvs);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	OWN(QP, qp);
	ENTER_ERR(qp, attr, attr_mask, init_attr);
	*attr = ((struct fake_qp *)qp)->attr;
	attr->qp_state = qp->state;
	attr->qp_access_flags = ((struct fake_qp *)qp)->access;
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap.max_send_wr = 123,
		.qp_type = qp->qp_type,
		.sq_sig_all = 1,
	};
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	OWN(QP, qp);
	ENTER_OR(0, qp, op, flags);
	return 1;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	OWN(QP, qp);
	ENTER_ERR(qp, ece);
	return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	OWN(QP, qp);
	ENTER_ERR(qp, ece);
	return 0;
}

static int modify_qp_rate_limit(struct ibv_qp *qp,
				struct ibv_qp_rate_limit_attr *attr)
{
	OWN(QP, qp);
	ENTER_ERR(qp, attr);
	return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	OWN(QP, qp);
	ENTER_ERR(qp, gid, lid);
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	OWN(QP, qp);
	ENTER_ERR(qp, gid, lid);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	OWN(QP, qp);
	ENTER_ERR(qp);
	free_work(qp);
	drop_recvs(&((struct fake_qp *)qp)->recvs);
	purge(&async_events, qp);
	DESTROY(QP, qp);
	return 0;
}

/* --- the table --- */

static void init_context(struct verbs_context *v)
{
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->sz = sizeof(*v);
	v->context.ops.alloc_mw = alloc_mw;
	v->context.ops.bind_mw = bind_mw;
	v->context.ops.dealloc_mw = dealloc_mw;
	v->context.ops.poll_cq = poll_cq;
	v->context.ops.req_notify_cq = req_notify_cq;
	v->context.ops.post_srq_recv = post_srq_recv;
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
#define HAS(op) v->op = op
	HAS(query_port);
	HAS(advise_mr);
	HAS(alloc_null_mr);
	HAS(read_counters);
	HAS(attach_counters_point_flow);
	HAS(create_counters);
	HAS(destroy_counters);
	HAS(reg_dm_mr);
	HAS(alloc_dm);
	HAS(free_dm);
	HAS(modify_flow_action_esp);
	HAS(destroy_flow_action);
	HAS(create_flow_action_esp);
	HAS(modify_qp_rate_limit);
	HAS(alloc_parent_domain);
	HAS(dealloc_td);
	HAS(alloc_td);
	HAS(modify_cq);
	HAS(post_srq_ops);
	HAS(destroy_rwq_ind_table);
	HAS(create_rwq_ind_table);
	HAS(destroy_wq);
	HAS(modify_wq);
	HAS(create_wq);
	HAS(query_rt_values);
	HAS(create_cq_ex);
	HAS(query_device_ex);
	v->ibv_destroy_flow = destroy_flow;
	v->ibv_create_flow = create_flow;
	HAS(open_qp);
	HAS(create_qp_ex);
	HAS(get_srq_num);
	HAS(create_srq_ex);
	HAS(open_xrcd);
	HAS(close_xrcd);
#undef HAS
}

/* --- the end --- */

void fake_end(void)
{
	bool bad = objects || cq_events || async_events || completions;
	struct call *c;

	for (struct object *o = objects; o; o = o->next)
		fprintf(stderr, "fake: a %s is left: %p\n", kind_names[o->kind],
			o->p);
	while (calls) {
		c = calls;
		calls = c->next;
		if (c->fail)
			fprintf(stderr, "fake: %s has not failed\n", c->name);
		bad |= c->fail;
		free(c);
	}
	if (bad)
		die("not all is as it should be in the end");
}
