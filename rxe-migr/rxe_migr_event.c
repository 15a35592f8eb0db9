// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How many events of an object the application has read.
 *
 * The answer to a destroy command says so, and libibverbs then waits until the
 * application has acknowledged as many. Its own count moves with its memory, so
 * the kernel's has to come along. The core keeps it to itself, and a driver has
 * no business with it otherwise: core_uverbs.h is the core's private header, of
 * the kernel for which this is built (rxe-migr/build).
 *
 * Only read() on the event file changes a count. While it is fetched or set no
 * such event is on its way: the dump of a context with unread events is refused
 * by those who see the event file, and a restored object has had none.
 */
#include "core_uverbs.h"
#include "rxe.h"

void rxe_migr_get_cq_events(struct ib_cq *cq, u32 *comp, u32 *async)
{
	*comp = READ_ONCE(cq->uobject->comp_events_reported);
	*async = READ_ONCE(cq->uobject->uevent.events_reported);
}

void rxe_migr_set_cq_events(struct ib_cq *cq, u32 comp, u32 async)
{
	WRITE_ONCE(cq->uobject->comp_events_reported, comp);
	WRITE_ONCE(cq->uobject->uevent.events_reported, async);
}

u32 rxe_migr_get_qp_events(struct ib_qp *qp)
{
	return READ_ONCE(qp->uobject->uevent.events_reported);
}

void rxe_migr_set_qp_events(struct ib_qp *qp, u32 async)
{
	WRITE_ONCE(qp->uobject->uevent.events_reported, async);
}
