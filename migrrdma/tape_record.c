// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Recording: commands go to the kernel, and are written down with its answers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"
#include "tape_inner.h"

/* the number of a file. Return: -1 if there is none */
static int find_file(const struct tape *t, int fd)
{
	for (unsigned int i = 0; i < t->n_files; i++)
		if (t->files[i] == fd)
			return (int)i;
	return -1;
}

static int add_file(struct tape *t, int fd)
{
	if (t->n_files == MOST_TAPE_FILES)
		return tape_fail(t, "there are too many files");
	t->files[t->n_files] = fd;
	return (int)t->n_files++;
}

/* room for one with all the memory it could have, asked and answered */
static struct tape_entry *new_entry(struct tape *t,
				    const struct ib_uverbs_ioctl_hdr *hdr)
{
	size_t most = sizeof(struct tape_entry) +
		      2 * sizeof(hdr->attrs[0]) * hdr->num_attrs;
	struct tape_entry *e;
	char *bytes;

	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		most += 2 * tape_round(hdr->attrs[i].len);
	if (t->n + most > t->room) {
		bytes = realloc(t->bytes, 2 * t->room + most);
		if (!bytes) {
			tape_fail(t, "no memory");
			return NULL;
		}
		t->bytes = bytes;
		t->room = 2 * t->room + most;
	}
	e = (struct tape_entry *)(t->bytes + t->n);
	memset(e, 0, most);
	return e;
}

/* what is in memory as it is asked: it has its place behind all that may be kept */
static char *asked_memory(struct tape_entry *e)
{
	char *memory = tape_memory(e);

	for (unsigned int i = 0; i < e->hdr.num_attrs; i++)
		memory += tape_round(e->hdr.attrs[i].len);
	return memory;
}

/* An answer may come to the same memory, as a QP's capabilities do. */
static void note_asked(const struct ib_uverbs_ioctl_hdr *hdr,
		       struct tape_entry *e)
{
	const struct ib_uverbs_attr *a = hdr->attrs;
	char *memory = asked_memory(e);

	for (unsigned int i = 0; i < hdr->num_attrs; i++, a++) {
		if (a->len > sizeof(a->data))
			memcpy(memory, (const char *)(uintptr_t)a->data,
			       a->len);
		memory += tape_round(a->len);
	}
}

/* What is asked, with numbers for files; and handles, which the kernel gets as well. */
static int ask(struct tape *t, struct ib_uverbs_ioctl_hdr *hdr,
	       struct tape_entry *e)
{
	struct ib_uverbs_attr *a;
	int file;

	memcpy(&e->hdr, hdr, sizeof(*hdr) + sizeof(*a) * hdr->num_attrs);
	for (unsigned int i = 0; i < hdr->num_attrs; i++) {
		a = tape_asked(e) + i;
		switch (tape_kind(hdr, a)) {
		case TAPE_HANDLE:
			a->data = HANDLE(t->n_handles++);
			hdr->attrs[i].data = a->data;
			break;
		case TAPE_FILE:
			file = find_file(t, (int)a->data_s64);
			if (file < 0)
				return tape_fail(
					t,
					"command %u has a file that is not the device's",
					t->commands);
			a->data = (uint64_t)file;
			break;
		default:
			break;
		}
	}
	return 0;
}

static int note_memory(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
		       const struct ib_uverbs_attr *a, const char *asked,
		       char *memory, size_t bytes)
{
	size_t ignored = tape_ignored(hdr, a);
	int fd;

	if (tape_is_written(a))
		asked = (const char *)(uintptr_t)a->data;
	memcpy(memory + ignored, asked + ignored, bytes - ignored);
	if (!tape_opens_channel(hdr) || tape_kind(hdr, a) != TAPE_ANSWER ||
	    !tape_is_written(a))
		return 0;
	memcpy(&fd, memory, sizeof(fd));
	fd = add_file(t, fd);
	memcpy(memory, &fd, sizeof(fd));
	return fd < 0 ? -1 : 0;
}

static int note_answer(struct tape *t, const struct ib_uverbs_ioctl_hdr *hdr,
		       struct tape_entry *e)
{
	struct ib_uverbs_attr *b = tape_answered(e);
	const char *asked = asked_memory(e);
	char *memory = tape_memory(e);
	size_t bytes;
	int file;

	memcpy(b, hdr->attrs, sizeof(*b) * hdr->num_attrs);
	for (unsigned int i = 0; i < hdr->num_attrs; i++, b++) {
		bytes = tape_held(e, b);
		if (bytes && note_memory(t, hdr, b, asked, memory, bytes))
			return -1;
		asked += tape_round(b->len);
		memory += tape_round(bytes);
		if (tape_kind(hdr, b) == TAPE_OPENS && !e->result) {
			file = add_file(t, (int)b->data_s64);
			if (file < 0)
				return -1;
			b->data = (uint64_t)file;
		}
	}
	e->bytes = (uint32_t)(memory - (char *)e);
	t->n += e->bytes;
	return t->n <= MOST_TAPE_BYTES ? 0 : tape_fail(t, "it is too long");
}

int tape_record(struct tape *t, int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct tape_entry *e = new_entry(t, hdr);
	int result, err, file = find_file(t, fd);

	if (!e)
		return -1;
	if (file < 0)
		file = add_file(t, fd);
	if (file < 0 || ask(t, hdr, e))
		return -1;
	note_asked(hdr, e);
	result = tape_kernel(fd, hdr);
	err = errno;
	e->file = (uint32_t)file;
	e->result = result;
	e->err = result ? err : 0;
	if (note_answer(t, hdr, e))
		return -1;
	t->commands++;
	errno = err;
	return result;
}
