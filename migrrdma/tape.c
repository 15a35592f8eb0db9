// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "tape_inner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "handles.h"

static _Thread_local struct tape *used;

static int ask_kernel(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	return (int)syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, hdr);
}

int (*tape_kernel)(int fd, struct ib_uverbs_ioctl_hdr *hdr) = ask_kernel;

/* --- what commands are --- */

enum tape_kind tape_kind(const struct ib_uverbs_ioctl_hdr *hdr,
			 const struct ib_uverbs_attr *attr)
{
	static const struct {
		uint16_t object, method, attr;
		enum tape_kind kind;
	} known[] = {
		{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE,
		  UVERBS_ATTR_CREATE_CQ_USER_HANDLE, TAPE_HANDLE },
		{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE,
		  UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, TAPE_FILE },
		{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE,
		  UVERBS_ATTR_CREATE_CQ_EVENT_FD, TAPE_FILE },
		{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE,
		  UVERBS_ATTR_CREATE_QP_USER_HANDLE, TAPE_HANDLE },
		{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE,
		  UVERBS_ATTR_CREATE_QP_EVENT_FD, TAPE_FILE },
		{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE,
		  UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, TAPE_HANDLE },
		{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE,
		  UVERBS_ATTR_CREATE_SRQ_EVENT_FD, TAPE_FILE },
		{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC,
		  UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, TAPE_OPENS },
		{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE,
		  UVERBS_ATTR_CORE_OUT, TAPE_ANSWER },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].object == hdr->object_id &&
		    known[i].method == hdr->method_id &&
		    known[i].attr == attr->attr_id)
			return known[i].kind;
	/* drivers number the attributes of their own methods so, too */
	return attr->attr_id == UVERBS_ATTR_UHW_OUT &&
			       !(hdr->method_id & UVERBS_ID_NS_MASK)
		       ? TAPE_ANSWER
		       : TAPE_PLAIN;
}

static const struct ib_uverbs_attr *
find_attr(const struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return hdr->attrs + i;
	return NULL;
}

static bool is_write(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->object_id == UVERBS_OBJECT_DEVICE &&
	       hdr->method_id == UVERBS_METHOD_INVOKE_WRITE;
}

bool tape_opens_channel(const struct ib_uverbs_ioctl_hdr *hdr)
{
	const struct ib_uverbs_attr *cmd, *out;

	if (!is_write(hdr))
		return false;
	cmd = find_attr(hdr, UVERBS_ATTR_WRITE_CMD);
	out = find_attr(hdr, UVERBS_ATTR_CORE_OUT);
	return cmd && cmd->data == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL &&
	       out && out->len >= sizeof(int32_t);
}

size_t tape_ignored(const struct ib_uverbs_ioctl_hdr *hdr,
		    const struct ib_uverbs_attr *attr)
{
	const struct ib_uverbs_attr *out;
	uint64_t response;

	if (!is_write(hdr) || attr->attr_id != UVERBS_ATTR_CORE_IN ||
	    attr->len < sizeof(response))
		return 0;
	response = attr->data;
	if (attr->len > sizeof(response))
		memcpy(&response, (const void *)(uintptr_t)attr->data,
		       sizeof(response));
	out = find_attr(hdr, UVERBS_ATTR_CORE_OUT);
	return out && out->data == response ? sizeof(response) : 0;
}

/* --- load --- */

/* Is one that begins here whole? What it says of itself is looked at only then. */
static bool is_entry(struct tape_entry *e, size_t left, unsigned int n_files)
{
	const size_t attr = sizeof(struct ib_uverbs_attr);
	struct ib_uverbs_attr *a, *b;
	size_t bytes;

	if (left < sizeof(*e) || e->bytes > left || e->bytes % 8 ||
	    e->file >= n_files || (e->result && e->result != -1))
		return false;
	bytes = sizeof(*e) + 2 * attr * e->hdr.num_attrs;
	if (e->bytes < bytes ||
	    e->hdr.length != sizeof(e->hdr) + attr * e->hdr.num_attrs)
		return false;
	for (unsigned int i = 0; i < e->hdr.num_attrs; i++) {
		a = tape_asked(e) + i;
		b = tape_answered(e) + i;
		if (a->attr_id != b->attr_id || a->len != b->len)
			return false;
		bytes += tape_round(tape_held(e, b));
	}
	return e->bytes == bytes;
}

/* the files and handles that it names */
static bool check_names(struct tape *t, struct tape_entry *e)
{
	const char *memory = tape_memory(e);
	struct ib_uverbs_attr *a, *b;
	uint32_t number;
	int32_t file;

	for (unsigned int i = 0; i < e->hdr.num_attrs; i++) {
		a = tape_asked(e) + i;
		b = tape_answered(e) + i;
		switch (tape_kind(&e->hdr, a)) {
		case TAPE_HANDLE:
			if (a->len != sizeof(a->data) || tape_is_written(b) ||
			    !handle_number(a->data, &number) ||
			    number != t->n_handles++)
				return false;
			break;
		case TAPE_FILE:
			if (a->len || a->data >= t->n_files)
				return false;
			break;
		case TAPE_OPENS:
			if (a->len || (!e->result && b->data >= t->n_files))
				return false;
			break;
		default:
			break;
		}
		if (tape_opens_channel(&e->hdr) &&
		    a->attr_id == UVERBS_ATTR_CORE_OUT && tape_is_written(b)) {
			memcpy(&file, memory, sizeof(file));
			if (file < 0 || (uint32_t)file >= t->n_files)
				return false;
		}
		memory += tape_round(tape_held(e, b));
	}
	return true;
}

static bool check_entries(struct tape *t)
{
	struct tape_entry *e;

	for (size_t at = 0; at < t->n; at += e->bytes) {
		e = (struct tape_entry *)(t->bytes + at);
		if (!is_entry(e, t->n - at, t->n_files) || !check_names(t, e))
			return false;
		t->commands++;
	}
	return true;
}

static struct tape *load(struct tape *t, const void *bytes, size_t n,
			 const char **why)
{
	*why = "no memory";
	t->bytes = malloc(n + 1);
	if (!t->bytes)
		return NULL;
	memcpy(t->bytes, bytes, n);
	t->n = n;
	*why = "it is no tape";
	if (!check_entries(t))
		return NULL;
	*why = "no memory";
	t->commands = 0;
	t->handles = calloc((size_t)t->n_handles + 1, sizeof(*t->handles));
	return t->handles ? t : NULL;
}

struct tape *tape_load(const void *bytes, size_t n, const int *files,
		       unsigned int n_files, const char **why)
{
	struct tape *t = calloc(1, sizeof(*t));

	*why = t ? "it is too long" : "no memory";
	if (!t || n > MOST_TAPE_BYTES || n_files > MOST_TAPE_FILES) {
		for (unsigned int i = 0; i < n_files; i++)
			close(files[i]);
		free(t);
		return NULL;
	}
	t->plays = true;
	t->n_files = n_files;
	memcpy(t->files, files, n_files * sizeof(*files));
	if (!load(t, bytes, n, why)) {
		tape_free(t);
		return NULL;
	}
	return t;
}

bool tape_more(struct tape *t, const void *bytes, size_t n, const char **why)
{
	free(t->bytes);
	free(t->handles);
	t->bytes = NULL;
	t->handles = NULL;
	t->n = t->at = 0;
	t->n_handles = 0;
	*why = "it is too long";
	if (n > MOST_TAPE_BYTES || !load(t, bytes, n, why))
		return false;
	*why = "it has user handles";
	return !t->n_handles;
}

/* --- the rest --- */

struct tape *tape_new(void)
{
	return calloc(1, sizeof(struct tape));
}

void tape_free(struct tape *t)
{
	if (!t)
		return;
	for (unsigned int i = 0; i < t->n_files; i++)
		if (t->plays && !t->given[i])
			close(t->files[i]);
	free(t->handles);
	free(t->bytes);
	free(t);
}

int tape_fail(struct tape *t, const char *fmt, ...)
{
	va_list args;

	if (!t->trouble[0]) {
		va_start(args, fmt);
		vsnprintf(t->trouble, sizeof(t->trouble), fmt, args);
		va_end(args);
	}
	errno = EIO;
	return -1;
}

const char *tape_trouble(const struct tape *t)
{
	return t->trouble[0] ? t->trouble : NULL;
}

void tape_use(struct tape *t)
{
	used = t;
}

bool tape_is_used(void)
{
	return used;
}

bool tape_end(struct tape *t)
{
	if (t->plays && !t->trouble[0] && t->at < t->n)
		tape_fail(t,
			  "there is more on the tape than the first %u commands",
			  t->commands);
	if (t->trouble[0])
		return false;
	if (t->n_handles && t->plays) {
		handles_are(t->handles, t->n_handles);
		t->handles = NULL;
	}
	return true;
}

void tape_cut(struct tape *t)
{
	t->n = 0;
	t->commands = 0;
}

const void *tape_bytes(const struct tape *t, size_t *n)
{
	*n = t->n;
	return t->bytes;
}

const int *tape_files(const struct tape *t, unsigned int *n)
{
	*n = t->n_files;
	return t->files;
}

unsigned int tape_commands(const struct tape *t)
{
	return t->commands;
}

/* GIDs may be others by now. */
static bool asks_for_gids(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->object_id == UVERBS_OBJECT_DEVICE &&
	       (hdr->method_id == UVERBS_METHOD_QUERY_GID_TABLE ||
		hdr->method_id == UVERBS_METHOD_QUERY_GID_ENTRY);
}

int tape_command(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	if (used->trouble[0])
		return tape_fail(used, "it has failed");
	if (asks_for_gids(hdr))
		return tape_kernel(fd, hdr);
	return used->plays ? tape_play(used, fd, hdr)
			   : tape_record(used, fd, hdr);
}
