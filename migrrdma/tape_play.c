// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Playing: commands are compared with what is on the tape, and get the answers there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handles.h"
#include "tape_inner.h"

/* --- files --- */

/*
 * A provider has opened the device: in the place of that file it gets the one with the
 * objects, of the same device.
 */
static int give_device(struct tape *t, uint32_t file, int fd)
{
	struct stat own, other;

	if (fstat(fd, &own) || fstat(t->files[file], &other) ||
	    own.st_rdev != other.st_rdev)
		return tape_fail(t, "the tape is of another device");
	if (dup3(t->files[file], fd, O_CLOEXEC) < 0)
		return tape_fail(t, "the device's file: %s", strerror(errno));
	close(t->files[file]);
	t->files[file] = fd;
	t->given[file] = true;
	return 0;
}

static int give_file(struct tape *t, uint64_t file)
{
	t->given[file] = true;
	return t->files[file];
}

/* --- compare --- */

static int differs(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
		   const struct ib_uverbs_attr *a, size_t at)
{
	return tape_fail(
		t,
		"command %u, method %#x of object %#x: attribute %#x differs at byte %zu",
		t->commands, hdr->method_id, hdr->object_id, a->attr_id, at);
}

/* @a: what is asked; @on_tape, @memory: what was */
static int compare_memory(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
			  const struct ib_uverbs_attr *a,
			  const struct ib_uverbs_attr *on_tape,
			  const char *memory)
{
	const char *asked = a->len > sizeof(a->data)
				    ? (const char *)(uintptr_t)a->data
				    : (const char *)&a->data;

	if (a->len <= sizeof(a->data))
		memory = (const char *)&on_tape->data;
	for (size_t i = tape_ignored(hdr, a); i < a->len; i++)
		if (asked[i] != memory[i])
			return differs(t, hdr, a, i);
	return 0;
}

static int compare_attr(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
			unsigned int i, struct tape_entry *e,
			const char *memory)
{
	const struct ib_uverbs_attr *a = hdr->attrs + i;
	const struct ib_uverbs_attr *b = tape_asked(e) + i;

	if (a->attr_id != b->attr_id || a->len != b->len ||
	    a->flags != b->flags ||
	    a->attr_data.reserved != b->attr_data.reserved)
		return differs(t, hdr, a, 0);
	switch (tape_kind(hdr, a)) {
	case TAPE_HANDLE:
	case TAPE_ANSWER:
		return 0;
	case TAPE_FILE:
		return a->data_s64 == t->files[b->data] ? 0
							: differs(t, hdr, a, 0);
	default:
		break;
	}
	/* what has failed may have been answered in part, or not been read */
	if (e->result || tape_is_written(tape_answered(e) + i))
		return 0;
	if (!a->len) /* an object */
		return a->data == b->data ? 0 : differs(t, hdr, a, 0);
	return compare_memory(t, hdr, a, b, memory);
}

static int compare(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
		   struct tape_entry *e)
{
	const char *memory = tape_memory(e);

	if (hdr->object_id != e->hdr.object_id ||
	    hdr->method_id != e->hdr.method_id ||
	    hdr->driver_id != e->hdr.driver_id ||
	    hdr->num_attrs != e->hdr.num_attrs)
		return tape_fail(
			t,
			"command %u is method %#x of object %#x, and on the tape it is %#x of %#x",
			t->commands, hdr->method_id, hdr->object_id,
			e->hdr.method_id, e->hdr.object_id);
	for (unsigned int i = 0; i < hdr->num_attrs; i++) {
		if (compare_attr(t, hdr, i, e, memory))
			return -1;
		memory += tape_round(tape_held(e, tape_answered(e) + i));
	}
	return 0;
}

/* --- answer --- */

static void answer_attr(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
			struct ib_uverbs_attr *a, struct tape_entry *e,
			unsigned int i, const char *memory)
{
	const struct ib_uverbs_attr *b = tape_answered(e) + i;
	char *to = (char *)(uintptr_t)a->data;
	uint32_t number;
	int fd;

	if (tape_is_written(b)) {
		a->flags = b->flags;
		memcpy(to, memory, b->len);
		if (tape_kind(hdr, a) != TAPE_ANSWER ||
		    !tape_opens_channel(hdr))
			return;
		memcpy(&fd, memory, sizeof(fd));
		fd = give_file(t, (uint64_t)fd);
		memcpy(to, &fd, sizeof(fd));
		return;
	}
	switch (tape_kind(hdr, a)) {
	case TAPE_HANDLE:
		handle_number(tape_asked(e)[i].data, &number);
		t->handles[number] = a->data;
		break;
	case TAPE_OPENS:
		if (!e->result)
			a->data_s64 = give_file(t, b->data);
		break;
	case TAPE_PLAIN:
		if (!a->len)
			a->data = b->data;
		break;
	default:
		break;
	}
}

int tape_play(struct tape *t, int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct tape_entry *e = (struct tape_entry *)(t->bytes + t->at);
	const char *memory;

	if (t->at == t->n)
		return tape_fail(t, "there is no command %u on the tape",
				 t->commands);
	if (compare(t, hdr, e))
		return -1;
	if (!t->given[e->file] && give_device(t, e->file, fd))
		return -1;
	if (t->files[e->file] != fd)
		return tape_fail(t, "command %u is to another device",
				 t->commands);
	memory = tape_memory(e);
	for (unsigned int i = 0; i < hdr->num_attrs; i++) {
		answer_attr(t, hdr, hdr->attrs + i, e, i, memory);
		memory += tape_round(tape_held(e, tape_answered(e) + i));
	}
	t->at += e->bytes;
	t->commands++;
	errno = e->err;
	return e->result;
}
