// SPDX-License-Identifier: GPL-2.0
/* Requests of a real client, as an input of fuzz_vfu */
#include "fuzz_ops.h"
#include "vfu_priv.h"

#define RECORD_MAX (1 << 20) /* bytes of the file */
#define BODY_MAX 255

void vfu_record(const struct vfu *vfu, uint16_t cmd, const void *body,
		size_t len)
{
	unsigned int nfds = vfu->nfds < 7 ? vfu->nfds : 7;
	/* What a descriptor leads to is not recorded. */
	unsigned int kind = cmd == VFU_CMD_DMA_MAP ? FUZZ_SEALED : FUZZ_EVENTFD;
	uint8_t head[] = { FUZZ_OP(FUZZ_MESSAGE, nfds, kind), cmd, len };
	FILE *f = vfu->cfg.record;

	if (!f || len > BODY_MAX || ftell(f) > RECORD_MAX)
		return;
	fwrite(head, sizeof(head), 1, f);
	fwrite(body, len, 1, f);
}
