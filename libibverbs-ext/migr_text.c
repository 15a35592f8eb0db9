// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What went wrong, in words: one table for reasons, one for object types, one
 * for errors that speak of the whole context.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migr_cmd.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

static const char *const why_texts[] = {
	[RXE_MIGR_WHY_NONE] = "no reason given",
	[RXE_MIGR_WHY_PEER] = "the peer runs a driver without migration",
	[RXE_MIGR_WHY_SILENT] = "the peer does not answer",
	[RXE_MIGR_WHY_QP_TYPE] = "neither an RC, a UC nor a UD QP",
	[RXE_MIGR_WHY_AH] =
		"made by a library that keeps the address itself, and not only its number",
	[RXE_MIGR_WHY_QP_STATE] = "in a state that cannot be carried",
	[RXE_MIGR_WHY_MR_TYPE] = "not plain user memory",
	[RXE_MIGR_WHY_PIN] = "pages cannot be pinned",
	[RXE_MIGR_WHY_ELSEWHERE] =
		"its peer is not where it was, and was not restored here",
	[RXE_MIGR_WHY_MEMORY] =
		"its memory was unmapped, replaced or made read-only since it was registered, or is another process's",
	[RXE_MIGR_WHY_UNHEARD] = "the peer has not said that it waits",
};

static const char *const type_texts[] = {
	[RXE_MIGR_CONTEXT] = "context",
	[RXE_MIGR_PD] = "PD",
	[RXE_MIGR_CQ] = "CQ",
	[RXE_MIGR_MR] = "MR",
	[RXE_MIGR_QP] = "QP",
	[RXE_MIGR_SRQ] = "SRQ",
	[RXE_MIGR_AH] = "AH",
	[RXE_MIGR_MW] = "MW",
	[RXE_MIGR_COMP_CHANNEL] = "completion channel",
	[RXE_MIGR_ASYNC_FD] = "async event file",
	[RXE_MIGR_MCAST] = "list of groups",
};

struct errno_text {
	int err;
	const char *text;
};

static const struct errno_text errno_texts[] = {
	{ EACCES, "another process's memory, and CAP_SYS_PTRACE is needed" },
	{ EAGAIN, "objects come and go, or one is new and cannot be migrated" },
	{ EALREADY, "stopped already, or attached already" },
	{ EBADF, "the file does not belong to this context" },
	{ ENOENT, "the file is nothing of this context" },
	{ ENOKEY, "no cluster key is set on this host" },
	{ EOPNOTSUPP, "the device is not a migratable rdma_rxe" },
	{ EPERM, "CAP_CHECKPOINT_RESTORE is needed" },
	{ EPROTO, "the rdma_rxe that is loaded is of another version" },
};

/* what else they mean to LOAD */
static const struct errno_text load_texts[] = {
	{ EBADMSG, "not signed by a host of this cluster, or changed since" },
	{ EBUSY, "the context is in use" },
	{ EINVAL, "refused by the driver (the kernel log says more)" },
	{ ENOMEM, "too large for the memory of this host" },
	{ ENOKEY, "signed with a cluster key that is not set on this host" },
	{ EPROTONOSUPPORT, "of a version that the driver does not know" },
};

static const char *lookup(const char *const *texts, size_t n, uint32_t i,
			  const char *otherwise)
{
	return i < n && texts[i] ? texts[i] : otherwise;
}

const char *migr_why_text(uint32_t why)
{
	return lookup(why_texts, N_ELEM(why_texts), why, "unknown reason");
}

const char *migr_type_text(uint32_t type)
{
	return lookup(type_texts, N_ELEM(type_texts), type, "object");
}

static const char *lookup_errno(const struct errno_text *texts, size_t n,
				int err)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (texts[i].err == abs(err))
			return texts[i].text;
	return NULL;
}

const char *migr_errno_text(int err)
{
	return lookup_errno(errno_texts, N_ELEM(errno_texts), err)
		       ?: strerror(abs(err));
}

const char *migr_load_text(int err)
{
	return lookup_errno(load_texts, N_ELEM(load_texts), err)
		       ?: migr_errno_text(err);
}

void migr_status_text(const struct rxe_migr_status *st, int err,
		      struct migr_error *out)
{
	char name[48], who[128] = "";
	char gid[INET6_ADDRSTRLEN];

	if (!st || st->why == RXE_MIGR_WHY_NONE) {
		snprintf(out->text, sizeof(out->text), "context: %s",
			 migr_errno_text(err));
		return;
	}

	if (!st->type || st->type == RXE_MIGR_CONTEXT)
		snprintf(name, sizeof(name), "context");
	else
		snprintf(name, sizeof(name), "%s %u", migr_type_text(st->type),
			 st->handle);

	if (st->peer_qpn)
		snprintf(who, sizeof(who), " (QPN %#x, peer %s QPN %#x)",
			 st->qpn,
			 inet_ntop(AF_INET6, st->peer_gid, gid, sizeof(gid)),
			 st->peer_qpn);
	else if (st->qpn)
		snprintf(who, sizeof(who), " (QPN %#x)", st->qpn);

	snprintf(out->text, sizeof(out->text), "%s%s: %s", name, who,
		 migr_why_text(st->why));
}
