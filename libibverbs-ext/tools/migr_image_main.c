// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * migr-image: what is in the image of a verbs context, as text or as JSON. The
 * manual page says how it is used.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "show.h"

static const char usage[] =
	"usage: migr-image [-j] [-s | -rw] FILE...\n"
	"Prints images of verbs contexts; \"-\" is standard input.\n"
	"	-j	as JSON\n"
	"	-s	a summary\n"
	"	-r	with the bytes as they are\n"
	"	-w	with the work that waits in the rings\n"
	"	-h	this text\n"
	"Exit code 0: all files are images, 1: not, 2: wrong usage.\n";

struct file {
	const char *name;
	int fd;
	char *data;
	size_t length;
	size_t room;
};

/* `limit` bytes at most; -errno */
static int read_up_to(struct file *file, size_t limit)
{
	ssize_t n;

	while (file->length < limit) {
		if (file->length == file->room) {
			size_t room = file->room ? 2 * file->room : 65536;
			char *data = realloc(file->data, room);

			if (!data)
				return -ENOMEM;
			file->data = data;
			file->room = room;
		}
		n = file->room - file->length;
		if ((size_t)n > limit - file->length)
			n = limit - file->length;
		n = read(file->fd, file->data + file->length, n);
		if (!n)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			file->length += n;
	}
	return 0;
}

/*
 * The whole file, or of one that is no image as much as tells that: what has no
 * end, as /dev/zero, is not read to it.
 */
static int read_file(struct file *file, struct migr_error *err)
{
	struct rxe_migr_image_hdr hdr;
	int ret;

	ret = read_up_to(file, sizeof(hdr));
	if (ret || file->length < sizeof(hdr))
		goto out;
	memcpy(&hdr, file->data, sizeof(hdr));
	if (memcmp(hdr.magic, RXE_MIGR_MAGIC, sizeof(hdr.magic)) ||
	    hdr.version != RXE_MIGR_IMAGE_VERSION)
		goto out;
	ret = read_up_to(file,
			 hdr.length < SIZE_MAX ? hdr.length + 1 : SIZE_MAX);
	if (!ret && file->length > hdr.length) {
		snprintf(err->text, sizeof(err->text),
			 "image: the file is longer than length, %" PRIu64
			 " bytes",
			 (uint64_t)hdr.length);
		return -EINVAL;
	}
out:
	if (ret)
		snprintf(err->text, sizeof(err->text), "%s", strerror(-ret));
	return ret;
}

static int show_file(struct show *s, bool summary, struct file *file,
		     struct migr_error *err)
{
	struct migr_image img;
	int ret;

	ret = read_file(file, err);
	if (!ret)
		ret = migr_image_parse(file->data, file->length, &img, err);
	if (ret)
		return ret;
	if (summary)
		ret = show_summary(s, file->name, &img);
	else
		show_image(s, file->name, &img);
	if (ret)
		snprintf(err->text, sizeof(err->text), "%s", strerror(-ret));
	migr_image_free(&img);
	return ret;
}

static int show_named(struct show *s, bool summary, const char *name)
{
	struct file file = { .name = name };
	struct migr_error err = {};
	int ret;

	if (strcmp(name, "-"))
		file.fd = open(name, O_RDONLY | O_CLOEXEC);
	else
		file.fd = dup(STDIN_FILENO);
	if (file.fd < 0) {
		ret = -errno;
		snprintf(err.text, sizeof(err.text), "%s", strerror(errno));
	} else {
		ret = show_file(s, summary, &file, &err);
		close(file.fd);
	}
	free(file.data);
	if (ret)
		fprintf(stderr, "migr-image: %s: %s\n", name, err.text);
	return ret;
}

int main(int argc, char **argv)
{
	struct show s = { .f = stdout };
	bool summary = false;
	int opt, i, bad = 0;

	while ((opt = getopt(argc, argv, "jsrwh")) != -1)
		switch (opt) {
		case 'j':
			s.json = true;
			break;
		case 's':
			summary = true;
			break;
		case 'r':
			s.raw = true;
			break;
		case 'w':
			s.slots = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	if (optind == argc || (summary && (s.slots || s.raw))) {
		fputs(usage, stderr);
		return 2;
	}

	if (s.json)
		show_open(&s, NULL, '[');
	for (i = optind; i < argc; i++)
		if (show_named(&s, summary, argv[i]))
			bad = 1;
	if (s.json) {
		show_close(&s);
		fputc('\n', stdout);
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "migr-image: cannot write: %s\n",
			strerror(errno));
		bad = 1;
	}
	return bad;
}
