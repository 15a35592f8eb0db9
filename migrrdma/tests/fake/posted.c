// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What was posted, where the provider only remembers it */
#include "inner.h"

struct fake_posted fake_posted[FAKE_POSTED];
unsigned int fake_nposted, fake_posts, fake_most;
static int bad_number = -1;
bool tell_bad;

void fake_forget(int bad, bool tell)
{
	memset(fake_posted, 0, sizeof(fake_posted));
	fake_nposted = 0;
	fake_posts = 0;
	fake_most = 0;
	bad_number = bad;
	tell_bad = tell;
}

/* where the next request goes, or NULL if it is to fail; with the lock */
struct fake_posted *slot(void *queue, unsigned int in_call)
{
	struct fake_posted *p = &fake_posted[fake_nposted % FAKE_POSTED];

	if ((int)fake_nposted == bad_number)
		return NULL;
	fake_nposted++;
	if (in_call > fake_most)
		fake_most = in_call;
	p->queue = queue;
	return p;
}

void check_wr(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->qp_type == IBV_QPT_UD && wr->opcode != IBV_WR_LOCAL_INV)
		own(FAKE_AH, wr->wr.ud.ah, "post_send");
	if (wr->opcode == IBV_WR_BIND_MW) {
		own(FAKE_MW, wr->bind_mw.mw, "post_send");
		if (wr->bind_mw.bind_info.mr)
			own(FAKE_MR, wr->bind_mw.bind_info.mr, "post_send");
	}
}
