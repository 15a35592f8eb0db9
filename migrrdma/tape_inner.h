/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is on a tape, in the order of the commands. Both processes are of one build on one
 * host.
 */
#ifndef MIGRRDMA_TAPE_INNER_H
#define MIGRRDMA_TAPE_INNER_H

#include "tape.h"

/*
 * One command. Behind it are its attributes as they were asked with, the same as they were
 * answered, and the memory that they point to, in multiples of 8 bytes. Files are
 * numbers in the tape's list, and user handles those of handles.h.
 */
struct tape_entry {
	uint32_t bytes; /* of all that */
	uint32_t file;	/* the device's */
	int32_t result, err;
	struct ib_uverbs_ioctl_hdr hdr;
};

struct tape {
	bool plays;
	char *bytes;
	size_t n, room, at; /* @at: what is played next */
	unsigned int commands;

	int files[MOST_TAPE_FILES];
	bool given[MOST_TAPE_FILES]; /* the provider has it */
	unsigned int n_files;

	uint64_t *handles;
	uint32_t n_handles;

	char trouble[160];
};

/* what an attribute is, beyond what it says of itself */
enum tape_kind {
	TAPE_PLAIN,
	TAPE_HANDLE, /* user handle */
	TAPE_FILE,   /* a file that there is */
	TAPE_OPENS,  /* a new file */
	TAPE_ANSWER, /* it is not read, be it written or not */
};

enum tape_kind tape_kind(const struct ib_uverbs_ioctl_hdr *hdr,
			 const struct ib_uverbs_attr *attr);

/** tape_opens_channel - is a file's number the first thing in what it answers? */
bool tape_opens_channel(const struct ib_uverbs_ioctl_hdr *hdr);

/**
 * tape_ignored - so many bytes at the beginning of what an attribute points to are not
 * compared: an address for the answer, which is in another attribute, too
 */
size_t tape_ignored(const struct ib_uverbs_ioctl_hdr *hdr,
		    const struct ib_uverbs_attr *attr);

static inline size_t tape_round(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

static inline struct ib_uverbs_attr *tape_asked(struct tape_entry *e)
{
	return e->hdr.attrs;
}

static inline struct ib_uverbs_attr *tape_answered(struct tape_entry *e)
{
	return e->hdr.attrs + e->hdr.num_attrs;
}

static inline char *tape_memory(struct tape_entry *e)
{
	return (char *)(tape_answered(e) + e->hdr.num_attrs);
}

static inline bool tape_is_written(const struct ib_uverbs_attr *answered)
{
	return answered->len && answered->flags & UVERBS_ATTR_F_VALID_OUTPUT;
}

/* bytes of memory that this attribute has on the tape; what has failed was not read */
static inline size_t tape_held(const struct tape_entry *e,
			       const struct ib_uverbs_attr *answered)
{
	if (tape_is_written(answered) ||
	    (!e->result && answered->len > sizeof(answered->data)))
		return answered->len;
	return 0;
}

/** tape_fail - write down the first trouble. Return: -1, and EIO in errno */
__attribute__((format(printf, 2, 3))) int tape_fail(struct tape *t,
						    const char *fmt, ...);

/* tape_record.c, tape_play.c */
int tape_record(struct tape *t, int fd, struct ib_uverbs_ioctl_hdr *hdr);
int tape_play(struct tape *t, int fd, struct ib_uverbs_ioctl_hdr *hdr);

#endif
