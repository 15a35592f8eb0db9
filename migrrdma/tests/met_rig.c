// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "met_rig.h"

int told;

uint32_t posted(struct ibv_qp *qp, struct ibv_qp *real, uint32_t rkey)
{
	uint32_t key;

	CHECK(!write_one(qp, 1, rkey));
	key = fake_sent(real, fake_sends(real) - 1)->wr.wr.rdma.rkey;
	fake_finish(real, 1, IBV_WC_SUCCESS);
	check_polled(w.cq, 1, (uint64_t[]){ 1 }, 1);
	return key;
}

const char *id_of(unsigned int process, unsigned int turn)
{
	static char id[32];

	snprintf(id, sizeof(id), "@n1:%u:8:%u", process, turn);
	return id;
}

bool tells_keys(const char *id, uint32_t real)
{
	char line[128];

	snprintf(line, sizeof(line), "keys %s\n", id);
	if (!does(told, line))
		return false;
	snprintf(line, sizeof(line), "key %s 0x7701 %u\n", id, real);
	return does(told, line);
}

bool is_met(const struct ibv_qp *qp, unsigned int peer, const char *id)
{
	char line[128];

	snprintf(line, sizeof(line), "met %u %u " PEER_GID " %s\n", qp->qp_num,
		 peer, id);
	return does(told, line);
}
