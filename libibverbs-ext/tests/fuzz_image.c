// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: any bytes, made to look like an image as far as magic,
 * length and checksum go, so that the fuzzer reaches what lies behind. What the
 * library takes for an image, migr-image shows.
 *
 *	fuzz_image CORPUS_FOLDER
 */

#include <stdlib.h>
#include <string.h>

#include "image_builder.h"
#include "show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct builder sample;
static FILE *null;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	builder_sample(&sample);
	null = fopen("/dev/null", "w");
	return !null;
}

/* input: (offset, 4 bytes) pairs that change the sample, or a whole image */
static char *make(const uint8_t *data, size_t size, size_t *length)
{
	struct rxe_migr_image_hdr *hdr;
	uint16_t at;
	char *copy;

	if (size && data[0] & 1) {
		*length = sample.length;
		copy = malloc(*length);
		memcpy(copy, sample.data, *length);
		for (data++, size--; size >= 6; data += 6, size -= 6) {
			memcpy(&at, data, 2);
			at &= ~3;
			if (at + 4U <= *length)
				memcpy(copy + at, data + 2, 4);
		}
	} else {
		*length = size;
		copy = malloc(size ? size : 1);
		memcpy(copy, data, size);
	}
	hdr = (void *)copy;
	if (*length >= sizeof(*hdr)) {
		memcpy(hdr->magic, RXE_MIGR_MAGIC, 8);
		hdr->version = RXE_MIGR_IMAGE_VERSION;
		hdr->length = *length;
		builder_seal(copy, *length);
	}
	return copy;
}

static void show(const struct migr_image *img, bool json)
{
	struct show s = {
		.f = null,
		.json = json,
		.slots = true,
		.raw = true,
	};

	if (json)
		show_open(&s, NULL, '[');
	show_image(&s, "image", img);
	if (show_summary(&s, "image", img))
		return;
	if (json)
		show_close(&s);
	if (s.depth || s.objects)
		abort(); /* something is left open */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct migr_error err;
	struct migr_image img;
	size_t length;
	char *copy = make(data, size, &length);

	if (!migr_image_parse(copy, length, &img, &err)) {
		show(&img, size & 1);
		migr_image_free(&img);
	}
	free(copy);
	return 0;
}
