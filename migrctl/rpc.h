/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages between CRIU and who has started it with "swrk" (rpc.proto of libcriu-dev):
 * a packet each, of a SOCK_SEQPACKET socket. They are passed on as they are.
 */
#ifndef MIGRCTL_RPC_H
#define MIGRCTL_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "rpc.pb-c.h"

enum {
	RPC_BYTES = 256 << 10, /* of a packet; runc's are of a few KiB */
	RPC_FILES = 8,
};

/* too large for a stack */
struct rpc_message {
	size_t bytes;
	int files[RPC_FILES]; /* that came with it */
	int n_files;
	unsigned char data[RPC_BYTES];
};

/**
 * rpc_peek - what the next message asks for; it stays where it is
 *
 * Return: a CRIU_REQ_TYPE__..., or -1: the end, or nothing that is a request
 */
int rpc_peek(int fd);

/**
 * rpc_receive - the next message; its files are closed by rpc_close_files()
 *
 * Return: 1; 0 at the end; -1 with errno, EBADMSG if it was not to be had whole, and
 * ECONNRESET if the peer has ended before it heard everything: there may be more
 */
int rpc_receive(int fd, struct rpc_message *m);

/* false with errno */
bool rpc_send(int fd, const struct rpc_message *m);

void rpc_close_files(struct rpc_message *m);

/**
 * rpc_take_folders - make a request of another process one of this one
 * @asker: the end of a socket pair that it has made
 *
 * CRIU takes the numbers of the folders of images and logs for those of whoever has made
 * the socket (SO_PEERCRED), and opens /proc/PID/fd/NUMBER. So they are opened here, not
 * close-on-exec: this process becomes CRIU.
 *
 * Return: false with errno
 */
bool rpc_take_folders(int asker, struct rpc_message *request);

/* Tell CRIU that what it has notified somebody of is well, or cannot be. false with errno */
bool rpc_acknowledge(int fd, bool success);

/* What CRIU says, to be given back by criu_resp__free_unpacked(); NULL if it is none */
CriuResp *rpc_response(const struct rpc_message *m);

#endif
