// SPDX-License-Identifier: GPL-2.0
/*
 * What comes from outside goes to files, from which the fuzzers can begin:
 * real drivers and real peers know more than we would think of.
 */
#include <errno.h>

#include "cmd_ops.h"
#include "nic.h"
#include "record.h"

#define RECORD_MAX (1 << 20) /* bytes of a file */

static void number(FILE *f, uint64_t value, size_t n)
{
	fwrite(&value, n, 1, f); /* little-endian, as all hosts of a ConnectX */
}

/* Zeros at the end need not be in the input. */
void op_cmd(FILE *f, uint8_t how, const uint8_t *in, uint32_t in_len,
	    uint32_t out_len)
{
	uint32_t n = in_len;

	while (n > 16 && !in[n - 1])
		n--;
	number(f, OP_CMD, 1);
	number(f, how, 1);
	number(f, in_len, 2);
	number(f, out_len, 2);
	number(f, n, 2);
	fwrite(in, n, 1, f);
}

void op_bar(FILE *f, uint32_t off, const void *bytes, size_t n)
{
	uint64_t value = 0;

	memcpy(&value, bytes, n);
	number(f, OP_BAR, 1);
	number(f, off, 4);
	number(f, n - 1, 1);
	number(f, value, 8);
}

void op_frame(FILE *f, const uint8_t *frame, size_t n)
{
	number(f, OP_FRAME, 1);
	number(f, n, 1);
	if (n)
		fwrite(frame, n, 1, f);
}

int record_open(struct nic *nic, const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/cmd", folder);
	nic->record = fopen(path, "we");
	snprintf(path, sizeof(path), "%s/vfu", folder);
	nic->record_vfu = fopen(path, "we");
	return nic->record && nic->record_vfu ? 0 : -errno;
}

void record_close(struct nic *nic)
{
	if (nic->record)
		fclose(nic->record);
	if (nic->record_vfu)
		fclose(nic->record_vfu);
}

static bool has_room(FILE *f)
{
	return f && ftell(f) < RECORD_MAX;
}

void record_cmd(struct nic *nic, uint32_t in_len, uint32_t out_len)
{
	/* lengths have 16 bits there */
	if (has_room(nic->record) && in_len <= 0xffff && out_len <= 0xffff)
		op_cmd(nic->record, 0, nic->cmd_in, in_len, out_len);
}

void record_bar(struct nic *nic, uint64_t off, const void *bytes, size_t n)
{
	if (has_room(nic->record) && n && n <= 8)
		op_bar(nic->record, off, bytes, n);
}

void record_frame(struct nic *nic, const uint8_t *frame, uint32_t n)
{
	if (has_room(nic->record) && n <= 255)
		op_frame(nic->record, frame, n);
}
