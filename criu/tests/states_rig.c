// SPDX-License-Identifier: GPL-2.0
#include <poll.h>
#include <unistd.h>

#include "states.h"

#define BYTES 64

static const struct {
	const char *name;
	enum ibv_qp_state state;
} wanted[QPS] = {
	[SQD] = { "SQD", IBV_QPS_SQD },
	[SQD_PEER] = { "SQD's peer", IBV_QPS_RTS },
	[DRAINING] = { "draining", IBV_QPS_SQD },
	[DEAF] = { "deaf", IBV_QPS_RTS },
	[RTR] = { "RTR", IBV_QPS_RTR },
	[RTR_PEER] = { "RTR's peer", IBV_QPS_RTS },
	[INIT] = { "INIT", IBV_QPS_INIT },
	[RESET] = { "RESET", IBV_QPS_RESET },
	[LEFT] = { "left", IBV_QPS_RTS },
	[ENDED] = { "ended", IBV_QPS_ERR },
	[ERR] = { "ERR", IBV_QPS_ERR },
	[ERR_PEER] = { "ERR's peer", IBV_QPS_ERR },
	[REFUSED] = { "refused", IBV_QPS_ERR },
	[REFUSER] = { "refuser", IBV_QPS_ERR },
	[UNHEARD] = { "unheard", IBV_QPS_ERR },
};

struct ibv_context *verbs;
struct ibv_qp *qp[QPS];
struct ibv_qp_attr before[QPS];
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_srq *srq;
static struct ibv_srq_attr srq_attr;
static struct ibv_cq *cq[QPS][QUEUES];
static char memory[QPS][QUEUES][SLOTS][BYTES];
static unsigned int posted[QPS][QUEUES], completed[QPS][QUEUES];

/* ---- life ---- */

void make(const char *device)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { 8, 8, 1, 1, 0 } };

	verbs = loop_open(device);
	NEED(pd = ibv_alloc_pd(verbs));
	NEED(mr = ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE));
	NEED(srq = ibv_create_srq(pd, &srq_init));
	for (int i = 0; i < QPS; i++) {
		for (int k = 0; k < QUEUES; k++)
			NEED(cq[i][k] = ibv_create_cq(verbs, 2 * SLOTS, NULL,
						      NULL, 0));
		init.send_cq = cq[i][SENT];
		init.recv_cq = cq[i][RECEIVED];
		init.srq = i == RTR || i == REFUSER ? srq : NULL;
		NEED(qp[i] = ibv_create_qp(pd, &init));
	}
}

void destroy(void)
{
	for (int i = 0; i < QPS; i++) {
		NEED(!ibv_destroy_qp(qp[i]));
		for (int k = 0; k < QUEUES; k++)
			NEED(!ibv_destroy_cq(cq[i][k]));
	}
	NEED(!ibv_destroy_srq(srq) && !ibv_dereg_mr(mr));
	NEED(!ibv_dealloc_pd(pd) && !ibv_close_device(verbs));
}

/* ---- work ---- */

static char *slot(int q, int queue, unsigned int number)
{
	return memory[q][queue][number % SLOTS];
}

static char content(int q, unsigned int number)
{
	return (char)(q * 20 + number + 1);
}

void post_send(int q, enum ibv_wr_opcode opcode)
{
	const unsigned int number = posted[q][SENT]++;
	char *data = slot(q, SENT, number);
	struct ibv_sge sge = { (uintptr_t)data, BYTES, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number,
				  .opcode = opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = { (uintptr_t)data, mr->rkey } };
	struct ibv_send_wr *bad;

	memset(data, content(q, number), BYTES);
	NEED(!ibv_post_send(qp[q], &wr, &bad));
}

/* to the SRQ, if the QP has one */
static void post_recv(int q)
{
	const unsigned int number = posted[q][RECEIVED]++;
	char *data = slot(q, RECEIVED, number);
	struct ibv_sge sge = { (uintptr_t)data, BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = number,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	memset(data, 0, BYTES);
	if (qp[q]->srq)
		NEED(!ibv_post_srq_recv(srq, &wr, &bad));
	else
		NEED(!ibv_post_recv(qp[q], &wr, &bad));
}

void post(int q, int queue, int n)
{
	while (n--)
		if (queue == SENT)
			post_send(q, IBV_WR_SEND);
		else
			post_recv(q);
}

struct ibv_wc complete(int q, int queue, enum ibv_wc_status status)
{
	const unsigned int number = completed[q][queue]++;
	struct ibv_wc wc;
	int n;

	for (int t = 0; !(n = ibv_poll_cq(cq[q][queue], 1, &wc)) && t < 30000;
	     t++)
		usleep(1000);
	if (n != 1 || wc.status != status || wc.wr_id != number) {
		printf("%s, %s %u of %u: ", wanted[q].name,
		       queue == SENT ? "send" : "receive", number,
		       posted[q][queue]);
		if (n == 1)
			printf("%llu %s\n", (unsigned long long)wc.wr_id,
			       ibv_wc_status_str(wc.status));
		else
			puts("nothing");
	}
	NEED(n == 1 && wc.status == status && wc.wr_id == number);
	NEED(wc.qp_num == qp[q]->qp_num);
	return wc;
}

void flushed(int q, int queue, int n)
{
	while (n--)
		complete(q, queue, IBV_WC_WR_FLUSH_ERR);
}

void nothing(int q, int queue)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq[q][queue], 1, &wc);

	if (n)
		printf("%s: a %s too many\n", wanted[q].name,
		       queue == SENT ? "send" : "receive");
	NEED(!n);
}

void delivered(int from, int to, int n)
{
	while (n--) {
		unsigned int sent = completed[from][SENT];
		const char *data = slot(to, RECEIVED, completed[to][RECEIVED]);
		struct ibv_wc wc = complete(to, RECEIVED, IBV_WC_SUCCESS);

		NEED(wc.opcode == IBV_WC_RECV && wc.byte_len == BYTES);
		for (int i = 0; i < BYTES; i++)
			NEED(data[i] == content(from, sent));
		complete(from, SENT, IBV_WC_SUCCESS);
	}
}

void exchange(int from, int to, int n)
{
	post(to, RECEIVED, n);
	post(from, SENT, n);
	delivered(from, to, n);
}

void resize_srq(unsigned int max_wr)
{
	srq_attr.max_wr = max_wr;
	NEED(!ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR));
	NEED(!ibv_query_srq(srq, &srq_attr) && srq_attr.max_wr >= max_wr);
}

void check_srq(void)
{
	struct ibv_srq_attr is;

	NEED(!ibv_query_srq(srq, &is));
	NEED(is.max_wr == srq_attr.max_wr && is.max_sge == srq_attr.max_sge);
	NEED(is.srq_limit == srq_attr.srq_limit);
}

/* ---- events ---- */

void event_is(enum ibv_event_type type, int q)
{
	struct pollfd p = { .fd = verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	NEED(poll(&p, 1, 30000) == 1 && !ibv_get_async_event(verbs, &event));
	if (event.event_type != type || event.element.qp != qp[q])
		printf("not of %s: %s\n", wanted[q].name,
		       ibv_event_type_str(event.event_type));
	NEED(event.event_type == type && event.element.qp == qp[q]);
	ibv_ack_async_event(&event);
}

void no_event(void)
{
	struct pollfd p = { .fd = verbs->async_fd, .events = POLLIN };

	NEED(!poll(&p, 1, 0));
}

/* ---- attributes ---- */

struct ibv_qp_attr query(int q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	/* all of them */
	NEED(!ibv_query_qp(qp[q], &attr, (IBV_QP_DEST_QPN << 1) - 1, &init));
	return attr;
}

#define SAME(field)                                                      \
	do {                                                             \
		if (was->field != is.field) {                            \
			printf("%s: " #field " was %#x, is %#x\n",       \
			       wanted[q].name, (unsigned int)was->field, \
			       (unsigned int)is.field);                  \
			same = 0;                                        \
		}                                                        \
	} while (0)

static void leads_home(int q, const struct ibv_global_route *grh)
{
	union ibv_gid gid;

	NEED(!ibv_query_gid(verbs, 1, grh->sgid_index, &gid));
	if (memcmp(&gid, &grh->dgid, sizeof(gid)))
		printf("%s: does not lead to where it is\n", wanted[q].name);
	NEED(!memcmp(&gid, &grh->dgid, sizeof(gid)));
}

void as_before(int q)
{
	const struct ibv_qp_attr *was = &before[q];
	const struct ibv_qp_attr is = query(q);
	int same = 1;

	SAME(qp_state);
	SAME(cur_qp_state);
	SAME(sq_draining);
	SAME(sq_psn);
	SAME(rq_psn);
	SAME(qp_access_flags);
	SAME(pkey_index);
	SAME(port_num);
	SAME(cap.max_send_wr);
	SAME(cap.max_recv_wr);
	SAME(cap.max_send_sge);
	SAME(cap.max_recv_sge);
	SAME(cap.max_inline_data);
	/* who was its peer is not restored, as it has none any more */
	if (is.qp_state != IBV_QPS_ERR) {
		SAME(path_mtu);
		SAME(dest_qp_num);
		SAME(max_rd_atomic);
		SAME(max_dest_rd_atomic);
		SAME(min_rnr_timer);
		SAME(timeout);
		SAME(retry_cnt);
		SAME(rnr_retry);
		SAME(ah_attr.is_global);
		SAME(ah_attr.port_num);
		SAME(ah_attr.grh.flow_label);
		SAME(ah_attr.grh.hop_limit);
		SAME(ah_attr.grh.traffic_class);
	}
	NEED(same);
	/* who has ended is not looked for */
	if (is.qp_state >= IBV_QPS_RTR && is.qp_state <= IBV_QPS_SQD &&
	    q != LEFT)
		leads_home(q, &is.ah_attr.grh);
}

void note(int q)
{
	before[q] = query(q);
	if (before[q].qp_state != wanted[q].state)
		printf("%s: in state %d\n", wanted[q].name, before[q].qp_state);
	NEED(before[q].qp_state == wanted[q].state);
}
