// SPDX-License-Identifier: GPL-2.0
/* Send and receive WQEs: what is understood, and what a hostile one gets */
#include "rdma/wqe.h"
#include "../../../tests/check.h"

static uint8_t wqe[WQE_MAX], data[WQE_MAX];
static struct roce_sge sge[WQE_MAX_SGE];
static struct roce_send_wqe out;
static uint32_t inl;

static void begin(uint8_t opcode, uint8_t flags)
{
	memset(wqe, 0, sizeof(wqe));
	wqe[3] = opcode;
	wqe[11] = flags;
	put_be32(wqe + 12, 0x12345678);
}

static void segment(uint32_t at, uint32_t len, uint32_t key, uint64_t addr)
{
	put_be32(wqe + at, len);
	put_be32(wqe + at + 4, key);
	put_be64(wqe + at + 8, addr);
}

static int decode(uint32_t len, enum roce_qp_type type)
{
	out = (struct roce_send_wqe){ .sge = sge };
	return wqe_decode_send(wqe, len, type, &out, data, &inl);
}

static void test_send(void)
{
	begin(WQE_SEND_IMM, 0x08 | 0x02 | 0x80);
	segment(16, 100, 7, 0x1000);
	segment(32, 0, 8, 0x2000); /* nothing */
	segment(48, 0x7fffffff, 9, ~0ULL);
	CHECK(!decode(64, ROCE_QPT_RC), "decode");
	CHECK(out.opcode == ROCE_WR_SEND_WITH_IMM, "opcode %u", out.opcode);
	CHECK(out.flags == (ROCE_SEND_SIGNALED | ROCE_SEND_SOLICITED |
			    ROCE_SEND_FENCE),
	      "flags %#x", out.flags);
	CHECK(out.num_sge == 2 && sge[0].length == 100 && sge[0].key == 7 &&
		      sge[0].addr == 0x1000 && sge[1].length == 0x7fffffff &&
		      sge[1].addr == ~0ULL,
	      "elements");
	CHECK(be32toh(out.imm_data) == 0x12345678, "immediate");
	CHECK(decode(15, ROCE_QPT_RC) == -EINVAL, "no control segment");
	CHECK(decode(0, ROCE_QPT_RC) == -EINVAL, "nothing");
	CHECK(decode(40, ROCE_QPT_RC) == -EINVAL, "half an element");
	for (uint32_t op = 0; op < 256; op++) {
		begin(op, 0);
		decode(16, ROCE_QPT_RC);
		decode(16, ROCE_QPT_UD);
	}
	begin(0xff, 0);
	CHECK(decode(64, ROCE_QPT_RC) == -EINVAL, "no such opcode");
}

static void test_too_many(void)
{
	begin(WQE_SEND, 0);
	for (uint32_t i = 0; i < WQE_MAX_SGE + 1; i++)
		segment(16 + 16 * i, 1, i, i);
	CHECK(!decode(16 + 16 * WQE_MAX_SGE, ROCE_QPT_RC) &&
		      out.num_sge == WQE_MAX_SGE,
	      "as many as there may be");
	CHECK(decode(32 + 16 * WQE_MAX_SGE, ROCE_QPT_RC) == -EINVAL, "more");
}

static void test_inline(void)
{
	begin(WQE_SEND, 0);
	put_be32(wqe + 16, 0x80000000 | 40);
	memset(wqe + 20, 'x', 40);
	put_be32(wqe + 64, 0x80000000 | 3);
	memset(wqe + 68, 'y', 3);
	CHECK(!decode(80, ROCE_QPT_RC) && inl == 43 && data[39] == 'x' &&
		      data[40] == 'y' && data[42] == 'y',
	      "two pieces, %u bytes", inl);
	CHECK(out.flags & ROCE_SEND_INLINE && !out.num_sge, "no elements");
	CHECK(!decode(64, ROCE_QPT_RC) && inl == 40, "one piece");
	CHECK(decode(48, ROCE_QPT_RC) == -EINVAL, "longer than the WQE");
	put_be32(wqe + 16, 0xffffffff);
	CHECK(decode(80, ROCE_QPT_RC) == -EINVAL, "longer than all");
	put_be32(wqe + 16, 0x80000000 | WQE_MAX);
	CHECK(decode(WQE_MAX, ROCE_QPT_RC) == -EINVAL, "as long as all");
	put_be32(wqe + 16, 0x80000000);
	CHECK(!decode(32, ROCE_QPT_RC) && !inl, "none");
	put_be32(wqe + 16, 0x80000000 | 8);
	segment(32, 5, 6, 7);
	CHECK(decode(48, ROCE_QPT_RC) == -EINVAL, "then an element");
	segment(16, 5, 6, 7);
	put_be32(wqe + 32, 0x80000000 | 8);
	CHECK(decode(48, ROCE_QPT_RC) == -EINVAL, "after an element");
}

static void test_remote(void)
{
	begin(WQE_READ, 0);
	put_be64(wqe + 16, 0xabcdef);
	put_be32(wqe + 24, 0x99);
	segment(32, 64, 1, 2);
	CHECK(!decode(48, ROCE_QPT_RC) && out.remote_addr == 0xabcdef &&
		      out.rkey == 0x99 && out.num_sge == 1,
	      "READ");
	CHECK(decode(16, ROCE_QPT_RC) == -EINVAL, "no address");
	wqe[3] = WQE_ATOMIC_CS;
	put_be64(wqe + 32, 11);
	put_be64(wqe + 40, 22);
	segment(48, 8, 1, 2);
	CHECK(!decode(64, ROCE_QPT_RC) && out.swap == 11 &&
		      out.compare_add == 22,
	      "compare and swap");
	CHECK(decode(32, ROCE_QPT_RC) == -EINVAL, "no operands");
	wqe[3] = WQE_ATOMIC_FA;
	CHECK(!decode(64, ROCE_QPT_RC) && out.compare_add == 11, "add");
}

static void test_datagram(void)
{
	begin(WQE_SEND, 0);
	put_be32(wqe + 16, 0x1111);		 /* Q_Key */
	put_be32(wqe + 24, 0x80000000 | 0x4242); /* extended, QPN */
	put_be16(wqe + 30, 0xc123);		 /* UDP port */
	wqe[36 + 5] = 0xee;			 /* MAC address */
	wqe[42] = 3;
	wqe[43] = 9;
	put_be32(wqe + 44, 5 << 20 | 0x54321);
	wqe[48 + 15] = 0x77;
	segment(64, 10, 1, 2);
	CHECK(!decode(80, ROCE_QPT_UD) && out.remote_qpn == 0x4242 &&
		      out.remote_qkey == 0x1111 && out.num_sge == 1,
	      "UD");
	CHECK(out.av.udp_sport == 0xc123 && out.av.dmac[5] == 0xee &&
		      out.av.tclass == 3 && out.av.hop_limit == 9 &&
		      out.av.sgid_index == 5 && out.av.flow_label == 0x54321 &&
		      out.av.dgid[15] == 0x77,
	      "address vector");
	CHECK(decode(48, ROCE_QPT_UD) == -EINVAL, "cut");
	put_be32(wqe + 24, 0x4242);
	CHECK(decode(80, ROCE_QPT_UD) == -EINVAL, "not extended");
}

static void test_recv(void)
{
	struct roce_recv_wqe recv = { .sge = sge };

	begin(0, 0);
	segment(0, 10, 1, 2);
	segment(16, 0, 3, 4);
	segment(32, 20, 5, 6);
	segment(48, 30, END_LKEY, 8);
	CHECK(!wqe_decode_recv(wqe, 64, &recv) && recv.num_sge == 2 &&
		      sge[1].length == 20 && sge[1].key == 5,
	      "two");
	recv.num_sge = 0;
	CHECK(!wqe_decode_recv(wqe, 0, &recv) && !recv.num_sge, "none");
	for (uint32_t i = 0; i < WQE_MAX_SGE + 1; i++)
		segment(16 * i, 1, i, i);
	CHECK(wqe_decode_recv(wqe, 16 * (WQE_MAX_SGE + 1), &recv) == -EINVAL,
	      "too many");
}

int main(void)
{
	test_send();
	test_too_many();
	test_inline();
	test_remote();
	test_datagram();
	test_recv();
	return check_result();
}
