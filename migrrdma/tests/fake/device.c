// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Devices and contexts */
#include "inner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#undef ibv_query_port

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
const char *fake_prefix = "fake", *fake_sysfs = "/sys";

#define GID(n) { { { 0xfe, [15] = n } }, n, 1, IBV_GID_TYPE_ROCE_V2, 0 }
struct ibv_gid_entry fake_gids[FAKE_GIDS] = { GID(0), GID(1), GID(2),
					      GID(3), GID(4), GID(5),
					      GID(6), GID(7), GID(8) };
#undef GID

/*
 * A device that is plugged in has the address of one that is gone. When all are forgotten
 * there are others then, next to those that somebody has.
 */
enum {
	HOSTS = 4
};
static struct fake_device all_devices[HOSTS][FAKE_DEVICES];
static struct fake_device *devices = all_devices[0];

static bool is_left(const struct fake_device *f)
{
	for (int i = 0; i < FAKE_DEVICES; i++)
		if (f[i].refs)
			return true;
	return false;
}

static void forget_devices(void)
{
	int host = 0;

	fake_last.forgotten++;
	pthread_mutex_lock(&lock);
	while (host < HOSTS && is_left(all_devices[host]))
		host++;
	if (host == HOSTS)
		die("devices of %d hosts", HOSTS);
	devices = all_devices[host];
	pthread_mutex_unlock(&lock);
}

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
	struct fake_device *f;
	struct ibv_device *d;

	pthread_mutex_lock(&lock);
	f = &devices[n];
	d = &f->device;
	if (!f->refs++) {
		f->hidden.ops = fake_ops;
		f->hidden.sysfs = f;
		f->number = n;
		d->node_type = IBV_NODE_CA;
		d->transport_type = IBV_TRANSPORT_IB;
		snprintf(d->name, sizeof(d->name), "%s%d", fake_prefix, n);
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%d", n);
		snprintf(d->dev_path, sizeof(d->dev_path), "%s/dev%d",
			 fake_sysfs, n);
		snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/ib%d", n);
		add(FAKE_DEVICE, f);
	}
	pthread_mutex_unlock(&lock);
	return d;
}

static void put_device(struct ibv_device *device)
{
	struct fake_device *f = (struct fake_device *)device;

	pthread_mutex_lock(&lock);
	if (!f->refs)
		die("%s: %p is no living device of mine", __func__, (void *)f);
	if (!--f->refs) {
		drop(FAKE_DEVICE, f, __func__);
		memset(f, 0x55, sizeof(*f));
		f->refs = 0;
	}
	pthread_mutex_unlock(&lock);
}

void (*fake_listing)(void), (*fake_unlisting)(void), (*fake_opening)(void);

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	struct stat st;
	int n = FAKE_DEVICES;

	if (num_devices)
		*num_devices = 0;
	ENTER_OR(NULL, num_devices);
	if (fake_listing)
		fake_listing();
	/* libibverbs knows no device any more without a file */
	if (stat("/dev", &st)) {
		forget_devices();
		n = 0;
	}
	list = make(FAKE_LIST, (FAKE_DEVICES + 1) * sizeof(*list));
	for (int i = 0; i < n; i++)
		list[i] = get_device(i);
	list[n] = NULL;
	if (num_devices)
		*num_devices = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	OWN(LIST, list);
	ENTER(list);
	if (fake_unlisting)
		fake_unlisting();
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

/*
 * As libibverbs does: commands fail if this does, but those that destroy something are
 * believed to have succeeded.
 */
int command(const struct ibv_context *ctx)
{
	struct ib_uverbs_ioctl_hdr hdr = { .length = sizeof(hdr) };

	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &hdr) && errno == EIO ? EIO
									  : 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, attr);
	COMMAND_OR(EIO, ctx);
	memset(attr, 0, sizeof(*attr));
	attr->max_qp = 77;
	return 0;
}

/* as one that has all it is asked for */
int mlx5dv_query_device(struct ibv_context *ctx, struct mlx5dv_context *attrs)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, attrs);
	attrs->version = 0;
	attrs->flags = MLX5DV_CONTEXT_FLAGS_CQE_V1;
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
	*gid = fake_gids[index].gid;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port_num,
		      uint32_t gid_index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, port_num, gid_index, entry, flags, entry_size);
	*entry = fake_gids[gid_index];
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx,
			     struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(-errno, ctx, entries, max_entries, flags, entry_size);
	if (max_entries * entry_size > UINT16_MAX) /* of an ioctl */
		return -EINVAL;
	for (size_t i = 0; i < max_entries && i < FAKE_GIDS; i++)
		entries[i] = fake_gids[i];
	return FAKE_GIDS;
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

static void init_context(struct verbs_context *v)
{
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->sz = sizeof(*v);
	v->query_port = query_port;
	v->query_rt_values = query_rt_values;
	v->query_device_ex = query_device_ex;
	plain_ops(v);
	mr_ops(v);
	mw_ops(v);
	cq_ops(v);
	srq_ops(v);
	qp_ops(v);
}

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
	if (fake_opening)
		fake_opening();
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
	let_arrive(ctx);
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
