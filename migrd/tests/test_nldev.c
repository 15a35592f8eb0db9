// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel is asked, and what it says
 */
#include <stdio.h>

#include <rdma/rdma_netlink.h>

#include "check.h"
#include "nldev.h"

static char buf[NLDEV_BYTES];

static struct nlmsghdr *begin(void)
{
	memset(buf, 0xff, sizeof(buf));
	return mnl_nlmsg_put_header(buf);
}

static void test_questions(void)
{
	struct nlmsghdr *h;
	const struct nlattr *a;
	int n = 0;

	puts("questions");
	h = nldev_ask_devices(begin(), 7);
	CHECK(h->nlmsg_seq == 7 && h->nlmsg_len == MNL_NLMSG_HDRLEN);
	CHECK(h->nlmsg_type ==
	      RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
	CHECK((h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP);
	h = nldev_ask_qp(begin(), 8, 3, 2, 0x123456);
	CHECK(h->nlmsg_type ==
	      RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET));
	CHECK(!(h->nlmsg_flags & NLM_F_DUMP));
	mnl_attr_for_each (a, h, 0) {
		n++;
		if (mnl_attr_get_type(a) == RDMA_NLDEV_ATTR_DEV_INDEX)
			CHECK(mnl_attr_get_u32(a) == 3);
		else if (mnl_attr_get_type(a) == RDMA_NLDEV_ATTR_PORT_INDEX)
			CHECK(mnl_attr_get_u32(a) == 2);
		else
			CHECK(mnl_attr_get_type(a) ==
				      RDMA_NLDEV_ATTR_RES_LQPN &&
			      mnl_attr_get_u32(a) == 0x123456);
	}
	CHECK(n == 3);
	h = nldev_ask_pd(begin(), 9, 3, 5);
	CHECK(h->nlmsg_type ==
	      RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_PD_GET));
}

static void test_devices(void)
{
	struct nldev_device d;
	struct nlmsghdr *h;
	char name[80];

	puts("devices");
	h = begin();
	CHECK(!nldev_is_device(h, &d));
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, 2);
	CHECK(!nldev_is_device(h, &d));
	mnl_attr_put_strz(h, RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_MAX + 7, 1); /* of a newer kernel */
	CHECK(nldev_is_device(h, &d) && d.index == 2 &&
	      !strcmp(d.name, "rxe0"));
	memset(name, 'x', sizeof(name));
	for (size_t n = sizeof(d.name) - 1; n < sizeof(name) - 1; n++) {
		name[n] = 0;
		h = begin();
		mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, 2);
		mnl_attr_put_strz(h, RDMA_NLDEV_ATTR_DEV_NAME, name);
		CHECK(nldev_is_device(h, &d) == (n < sizeof(d.name)));
		name[n] = 'x';
	}
	h = begin();
	mnl_attr_put_u16(h, RDMA_NLDEV_ATTR_DEV_INDEX, 2);
	mnl_attr_put_strz(h, RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
	CHECK(!nldev_is_device(h, &d));
}

static void test_objects(void)
{
	struct nldev_object o;
	struct nlmsghdr *h;

	puts("objects");
	h = begin();
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_RES_PID, 1234);
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_RES_PDN, 9);
	CHECK(nldev_is_object(h, &o));
	CHECK(o.tid == 1234 && o.has_pdn && o.pdn == 9 && !o.is_kernels);
	h = begin();
	mnl_attr_put_strz(h, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
	CHECK(nldev_is_object(h, &o));
	CHECK(!o.tid && !o.has_pdn && o.is_kernels);
	h = begin();
	mnl_attr_put_u16(h, RDMA_NLDEV_ATTR_RES_PID, 1234);
	CHECK(nldev_is_object(h, &o) && !o.tid);
}

int main(void)
{
	test_questions();
	test_devices();
	test_objects();
	return check_result();
}
