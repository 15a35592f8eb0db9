// SPDX-License-Identifier: GPL-2.0
/* mlx5soft: a software ConnectX for a QEMU with vfio-user-pci */

#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "device.h"
#include "link.h"
#include "vfu.h"

static const char help[] =
	"Usage: mlx5soft -s SOCKET [OPTION...]\n"
	"A software ConnectX for QEMU: -device vfio-user-pci.\n"
	"\n"
	"  -s SOCKET  where QEMU connects\n"
	"  -m MAC     address of the port (default 52:54:00:12:5c:01)\n"
	"  -f WIRE    Ethernet: tap:NAME, or the number of a descriptor that\n"
	"             carries a frame with each read and write (default none)\n"
	"  --rate RATE, --delay TIME\n"
	"             what is sent leaves at no more than so many bits a second\n"
	"             (20M, 2.5G; FCS, preamble and gap count), and arrives so much\n"
	"             later (50us, 1ms; default of both: no limit)\n"
	"  -c SOCKET  where mlx5soft_ctl connects: counters, another limit, a time\n"
	"             that commands take\n"
	"  -r FOLDER  record what comes from outside, up to 1 MiB each: FOLDER/cmd,\n"
	"             commands, doorbells and short frames, for fuzz_cmd; FOLDER/vfu,\n"
	"             requests of QEMU, for fuzz_vfu\n"
	"  -v         log each command\n"
	"  -h, --help\n"
	"\n"
	"Packets of RDMA that follow each other go to a tap as one frame, which\n"
	"the kernel cuts where it has to (UDP segmentation offload, Linux 6.2):\n"
	"not after SIGUSR1, for those who capture, and again after SIGUSR2. Ends\n"
	"with SIGINT or SIGTERM.\n";

static int die(const char *what, int err)
{
	fprintf(stderr, "mlx5soft: %s: %s\n", what, strerror(err));
	return 1;
}

/* With a struct virtio_net_hdr the kernel cuts trains, or refuses to. */
static int open_tap(const char *name, bool trains)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd;

	if (strlen(name) >= sizeof(ifr.ifr_name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(ifr.ifr_name, name, strlen(name));
	if (trains)
		ifr.ifr_flags |= IFF_VNET_HDR;
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (ioctl(fd, TUNSETIFF, &ifr) ||
	    (trains &&
	     ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_wire(struct nic_config *cfg, const char *arg)
{
	char *end;
	long fd;

	if (!strncmp(arg, "tap:", 4)) {
		fd = open_tap(arg + 4, true);
		cfg->wire_trains = fd >= 0;
		if (fd < 0)
			fd = open_tap(arg + 4, false);
		if (fd >= 0 && !cfg->wire_trains)
			fprintf(stderr,
				"mlx5soft: %s: no UDP segmentation "
				"(Linux 6.2), packets go one by one\n",
				arg);
	} else {
		fd = strtol(arg, &end, 10);
		if (!*arg || *end || fd < 0) {
			errno = EINVAL;
			return -1;
		}
	}
	cfg->wire = fd;
	if (fd >= 0 && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK))
		return -1;
	return fd;
}

static int parse_mac(const char *arg, uint8_t mac[6])
{
	int n = 0;

	if (sscanf(arg, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0],
		   &mac[1], &mac[2], &mac[3], &mac[4], &mac[5], &n) != 6 ||
	    arg[n] || mac[0] & 1)
		return -1;
	return 0;
}

static const struct timespec *until_due(const struct nic *nic,
					struct timespec *t)
{
	int64_t ns = nic_due(nic);

	if (ns < 0)
		return NULL;
	t->tv_sec = ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
	return t;
}

/* Commands that would need more are refused. */
static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__ /* needs terabytes of addresses */
	const struct rlimit limit = { NIC_MAX_MEMORY, NIC_MAX_MEMORY };

	setrlimit(RLIMIT_DATA, &limit);
#endif
}

/* False: it is time to end. */
static bool take_signal(struct nic *nic, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2)
		return false;
	nic_wire_trains(nic, info.ssi_signo == SIGUSR2);
	return true;
}

#define ROUNDS 2

/*
 * False: the other end is gone, and all that it had sent has come. That is so
 * when nothing comes ROUNDS times: the first may be an error, with frames
 * behind it.
 */
static bool serve_wire(struct nic *nic, short events, unsigned int *nothing)
{
	bool came = nic_wire(nic, events);

	if (came || !(events & (POLLHUP | POLLRDHUP)))
		*nothing = 0;
	else
		++*nothing;
	return events & (POLLIN | POLLOUT) &&
	       !(events & POLLHUP && *nothing >= ROUNDS);
}

static int serve(struct nic *nic, int wire, int signals,
		 struct control *control)
{
	struct pollfd fds[4] = {
		{ .fd = vfu_fd(nic_vfu(nic)), .events = POLLIN },
		{ .fd = wire }, /* -1: ignored */
		{ .fd = signals, .events = POLLIN },
		{ .events = POLLIN },
	};
	const struct timespec none = { 0 };
	struct timespec due;
	unsigned int nothing = 0; /* has come, so often, at the end */
	bool more = false;

	for (;;) {
		fds[1].events = nic_wire_events(nic) | POLLRDHUP;
		if (nothing >= ROUNDS) /* it takes frames, and sends none */
			fds[1].events &= POLLOUT;
		fds[3].fd = control_fd(control);
		if (ppoll(fds, 4, more ? &none : until_due(nic, &due), NULL) <
		    0) {
			if (errno == EINTR)
				continue;
			return die("poll", errno);
		}
		if (fds[2].revents && !take_signal(nic, signals))
			return 0;
		if (fds[0].revents)
			vfu_process(nic_vfu(nic));
		if (fds[1].revents &&
		    !serve_wire(nic, fds[1].revents, &nothing))
			fds[1].fd = -1;
		if (fds[3].revents)
			control_serve(control, nic);
		more = nic_tick(nic);
	}
}

/* Blocked at once, because a signal may come before there is a loop; a busy
 * ppoll() with a mask would let them wait.
 */
static int open_signals(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGUSR1);
	sigaddset(&ours, SIGUSR2);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	return signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);
}

enum {
	RATE = 256, /* options without a letter */
	DELAY
};

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "rate", required_argument, NULL, RATE },
		{ "delay", required_argument, NULL, DELAY },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct nic_config cfg = {
		.mac = { 0x52, 0x54, 0x00, 0x12, 0x5c, 0x01 },
		.wire = -1,
	};
	struct control control = { -1, -1 };
	int signals = open_signals();
	const char *control_path = NULL;
	struct nic *nic;
	int c, ret;

	while ((c = getopt_long(argc, argv, "s:m:f:c:r:vh", longopts, NULL)) !=
	       -1)
		switch (c) {
		case 's':
			cfg.path = optarg;
			break;
		case 'm':
			if (parse_mac(optarg, cfg.mac))
				return die(optarg, EINVAL);
			break;
		case 'f':
			if (open_wire(&cfg, optarg) < 0)
				return die(optarg, errno);
			break;
		case 'c':
			control_path = optarg;
			break;
		case RATE:
			if (!link_parse_rate(optarg, &cfg.rate))
				return die(optarg, EINVAL);
			break;
		case DELAY:
			if (!link_parse_time(optarg, &cfg.delay))
				return die(optarg, EINVAL);
			break;
		case 'r':
			cfg.record = optarg;
			break;
		case 'v':
			cfg.verbose = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	if (!cfg.path || optind != argc) {
		fputs(help, stderr);
		return 2;
	}
	if (signals < 0)
		return die("signalfd", errno);
	signal(SIGPIPE, SIG_IGN);
	limit_memory();
	/* A frame in its time, and not up to 50 us later */
	prctl(PR_SET_TIMERSLACK, 1UL);
	ret = nic_create(&cfg, &nic);
	if (ret)
		return die(cfg.path, -ret);
	if (control_path && control_open(&control, control_path))
		ret = die(control_path, errno);
	else
		ret = serve(nic, cfg.wire, signals, &control);
	if (control.listener >= 0)
		control_close(&control, control_path);
	nic_destroy(nic);
	return ret;
}
