// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The text and the header file say the same: every field is described once,
 * at its offset.
 *
 *	test_format image-format.md
 */

#include <string.h>

#include "../../tests/check.h"
#include "migr_cmd.h"

struct row {
	const char *section; /* a heading, or a line in the place of one */
	const char *field;
	size_t offset;
};

#define ROW(heading, type, member) \
	{ heading, #member, offsetof(struct type, member) }
#define HDR(m) ROW("## Header", rxe_migr_image_hdr, m)
#define REC(m) ROW("## Records", rxe_migr_rec, m)
#define CTX(m) ROW("### CONTEXT", rxe_migr_rec_context, m)
#define MR(m) ROW("### MR", rxe_migr_rec_mr, m)
#define RING(m) ROW("### Ring", rxe_migr_ring, m)
#define CQ(m) ROW("### CQ", rxe_migr_rec_cq, m)
#define QP(m) ROW("### QP", rxe_migr_rec_qp, m)
#define SRQ(m) ROW("### SRQ", rxe_migr_rec_srq, m)
#define CHANNEL(m) ROW("### COMP_CHANNEL", rxe_migr_rec_comp_channel, m)
#define ASYNC(m) ROW("### ASYNC_FD", rxe_migr_rec_async_fd, m)
#define EVENT(m) ROW("An event", rxe_migr_event, m)
#define RES(m) ROW("A responder resource", rxe_migr_res, m)

/* clang-format off */
static const struct row rows[] = {
	HDR(magic), HDR(version), HDR(hdr_length), HDR(length), HDR(count),
	HDR(crc32), HDR(key_id), HDR(reserved), HDR(mac),
	REC(type), REC(length), REC(handle), REC(reserved), REC(user_handle),
	CTX(device), CTX(max_handle), CTX(reserved),
	MR(pd), MR(key), MR(access), MR(wire_key), MR(start), MR(size),
	MR(iova),
	RING(mmap_offset), RING(mmap_size), RING(log2_elem), RING(index_mask),
	RING(producer), RING(consumer), RING(slots),
	CQ(cqe), CQ(comp_channel), CQ(comp_vector), CQ(notify), CQ(ring),
	CQ(comp_events_reported), CQ(events_reported),
	QP(pd), QP(send_cq), QP(recv_cq), QP(qpn), QP(qp_type),
	QP(sq_sig_all), QP(max_send_wr), QP(max_send_sge),
	QP(max_inline_data), QP(max_recv_wr), QP(max_recv_sge), QP(state),
	QP(access_flags), QP(pkey_index), QP(port_num), QP(path_mtu),
	QP(dest_qpn), QP(rq_psn), QP(sq_psn), QP(max_rd_atomic),
	QP(max_dest_rd_atomic), QP(min_rnr_timer), QP(timeout), QP(retry_cnt),
	QP(rnr_retry), QP(qkey), QP(sq_draining), QP(en_sqd_async_notify),
	QP(dgid), QP(sgid), QP(dmac), QP(network_type), QP(sgid_index),
	QP(flow_label), QP(hop_limit), QP(traffic_class), QP(udp_sport),
	QP(epoch), QP(peer_epoch), QP(req_psn), QP(req_opcode),
	QP(req_wqe_index), QP(req_rd_atomic), QP(req_need_rd_atomic),
	QP(req_noack_pkts), QP(ssn), QP(comp_psn), QP(comp_opcode),
	QP(resp_msn), QP(resp_psn), QP(resp_ack_psn), QP(resp_opcode),
	QP(resp_status), QP(resp_resid), QP(resp_rkey), QP(resp_length),
	QP(resp_res_head), QP(resp_va), QP(resp_offset), QP(wqe.valid),
	QP(wqe.num_sge), QP(wqe.wr_id), QP(wqe.length), QP(wqe.resid),
	QP(wqe.cur_sge), QP(wqe.sge_offset), QP(wqe.sge), QP(sq), QP(rq),
	QP(events_reported), QP(wire_qpn),
	QP(srq), QP(reserved),
	RES(kind), RES(first_psn), RES(last_psn), RES(cur_psn), RES(rkey),
	RES(length), RES(value), RES(flush_type), RES(flush_level),
	SRQ(pd), SRQ(srq_num), SRQ(max_wr), SRQ(max_sge), SRQ(limit),
	SRQ(error), SRQ(ring), SRQ(events_reported), SRQ(reserved),
	CHANNEL(cq), CHANNEL(events), ASYNC(events), ASYNC(reserved),
	EVENT(type), EVENT(handle),
};
/* clang-format on */

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* the next field that is described must be the next one of the table */
static void check_line(const char *section, const char *line, size_t *next)
{
	char field[64];
	size_t offset;

	if (sscanf(line, "| %zu | %63[a-z0-9_.] | ", &offset, field) != 2)
		return;
	if (!strcmp(field, "resources")) /* not a member, but behind them */
		return;
	CHECK(*next < N_ROWS, "%s is one too many", field);
	if (*next >= N_ROWS)
		return;
	CHECK(!strcmp(field, rows[*next].field), "%s where %s should be", field,
	      rows[*next].field);
	CHECK(offset == rows[*next].offset, "%s is at %zu", field,
	      rows[*next].offset);
	CHECK(!strncmp(section, rows[*next].section,
		       strlen(rows[*next].section)),
	      "%s is not in \"%s\"", field, rows[*next].section);
	(*next)++;
}

/* how long a record is at least: "| 3 | CQ | any number | 80 bytes" */
static void check_size(const char *line, unsigned int *sizes)
{
	static const size_t size[] = {
		[RXE_MIGR_CONTEXT] = sizeof(struct rxe_migr_rec_context),
		[RXE_MIGR_PD] = sizeof(struct rxe_migr_rec_pd),
		[RXE_MIGR_CQ] = sizeof(struct rxe_migr_rec_cq),
		[RXE_MIGR_MR] = sizeof(struct rxe_migr_rec_mr),
		[RXE_MIGR_QP] = sizeof(struct rxe_migr_rec_qp),
		[RXE_MIGR_SRQ] = sizeof(struct rxe_migr_rec_srq),
		[RXE_MIGR_COMP_CHANNEL] =
			sizeof(struct rxe_migr_rec_comp_channel),
		[RXE_MIGR_ASYNC_FD] = sizeof(struct rxe_migr_rec_async_fd),
	};
	unsigned int type;
	size_t bytes;

	if (sscanf(line, "| %u | %*[A-Z_] | %*[^|] | %zu bytes", &type,
		   &bytes) != 2)
		return;
	CHECK(type <= RXE_MIGR_ASYNC_FD && bytes == size[type],
	      "type %u has %zu bytes", type, bytes);
	(*sizes)++;
}

int main(int argc, char **argv)
{
	char line[1024], section[1024] = "";
	unsigned int sizes = 0;
	size_t next = 0;
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;

	if (!f) {
		fprintf(stderr, "usage: test_format image-format.md\n");
		return 2;
	}
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || !strncmp(line, "A responder", 11) ||
		    !strncmp(line, "An event", 8))
			strcpy(section, line);
		check_line(section, line, &next);
		check_size(line, &sizes);
	}
	fclose(f);
	CHECK(next == N_ROWS, "%zu of %zu fields described", next, N_ROWS);
	CHECK(sizes == 8, "the sizes of %u types", sizes);
	CHECK(sizeof(struct rxe_migr_image_hdr) == 72, "header");
	CHECK(sizeof(struct rxe_migr_rec_context) == 96, "CONTEXT");
	CHECK(sizeof(struct rxe_migr_rec_pd) == 24, "PD");
	CHECK(sizeof(struct rxe_migr_rec_cq) == 80, "CQ");
	CHECK(sizeof(struct rxe_migr_rec_mr) == 64, "MR");
	CHECK(sizeof(struct rxe_migr_rec_qp) == 904, "QP");
	CHECK(sizeof(struct rxe_migr_rec_srq) == 88, "SRQ");
	CHECK(sizeof(struct rxe_migr_res) == 40, "resource");
	return check_result();
}
