// SPDX-License-Identifier: GPL-2.0
/* The results as a page: what each figure shows, and what it does not */
#include "report.h"

#include <string.h>

const struct part blackout_parts[] = {
	{ "suspend", "suspend", "#7d4ea0" },
	{ "dump_rdma", "dump RDMA", "#c0504d" },
	{ "dump_others", "dump others", "#e3a39f" },
	{ "transfer", "transfer", "#bbbbbb" },
	{ "restore_others", "restore others", "#9dc3e6" },
	{ "restore_rdma", "restore RDMA", "#2e75b6" },
	{ "connect_resume", "connect, resume", "#2b8a57" },
	{ NULL, NULL, NULL },
};

const struct part stop_parts[] = {
	{ "wait", "wait for what is in flight", "#7d4ea0" },
	{ "first", "silence to the first packet", "#999999" },
	{ "all", "until each QP had one", "#2b8a57" },
	{ NULL, NULL, NULL },
};

const struct part datapath_parts[] = {
	{ "instructions", "instructions", "#2e75b6" },
	{ NULL, NULL, NULL },
};

const struct part jobs_parts[] = {
	{ "without", "the job as it is", "#bbbbbb" },
	{ "added", "more with a move", "#c0504d" },
	{ NULL, NULL, NULL },
};

static const struct figure figures[] = {
	{ "blackout",
	  "1. Blackout by part",
	  "who moves",
	  "QPs",
	  { "suspend", "dump_rdma", "dump_others", "transfer", "restore_others",
	    "restore_rdma", "connect_resume", "partner" },
	  "partner",
	  "suspend",
	  times_protocol,
	  "A container with perftest's `ib_write_bw` (messages of 4 KiB, 64 of each QP in "
	  "flight, and of all no more than 4096) moves while its partner stays; the paper's "
	  "figure 3. *client* and *server*: "
	  "both ends send, and that one moves. With pre-setup, where a provider can have it, "
	  "but where it says *no_pre-setup*. *partner* is what "
	  "counts: the time from the last packet that the partner got of the old host until "
	  "each of its QPs had one of the new host, by the host's clock, from a capture. The "
	  "parts are by clocks of the nodes, as `migr-ctr move --timing` tells them, and say "
	  "where the time goes. For the protocol, dump and restore of RDMA are what CRIU's "
	  "plug-in took, to the nearest line of CRIU's log, and the last part is from the "
	  "first RESUME to the last QP's first packet. For the layer they are the new QPs "
	  "of the partner and the end of the old ones; and the new objects and the exchange "
	  "of their names.",
	  "The parts need not add up to *partner*: the layer's suspension is before the last "
	  "packet, and words between programs are in no part. CRIU's own part is the same "
	  "for both ways; it is stop-and-copy, without pre-copy. "
	  "It runs in an emulated processor: its share is far larger than on a "
	  "real machine.",
	  "by the protocol partners make no QPs (*dump_rdma*), and nobody is told names "
	  "(*restore_rdma*); for that each QP's state travels. Differences of parts that are "
	  "CRIU's own are those of the images, and of how busy this machine was." },
	{ "wait",
	  "2. Wait before stop",
	  "varied",
	  "number",
	  { "waited", "queues_had", "device_had" },
	  NULL,
	  NULL,
	  times_link,
	  "How long it takes to suspend a sender and its partners at once (nothing moves), "
	  "from the word to the last answer; the paper's figure 4. *qps*: so many QPs, 64 "
	  "messages of 4 KiB in flight each, as far as `queues_had` says so. *bytes*: 16 "
	  "QPs, messages of that size. "
	  "*partners*: so many processes, each with a QP to a partner of its own and messages "
	  "of 64 KiB. The dashed line is what the link takes for the bytes that all queues "
	  "hold when they are full (`queues_had`); `device_had` is what mlx5soft said it "
	  "had sent and not seen acknowledged just before. The protocol does not wait.",
	  "The daemons' and the processes' own time is in it, in an emulated processor: few "
	  "bytes in flight show only that. Queues are not always full.",
	  NULL },
	{ "throughput",
	  "3. Throughput at the partner",
	  "who moves",
	  "QPs",
	  { "before", "after", "silence" },
	  "silence",
	  NULL,
	  times_protocol,
	  "16 QPs with messages of 64 KiB, 8 of each in flight; the paper's figure 5. Bytes "
	  "on the wire between partner and old or new host, both directions, in slots of 5 ms, "
	  "from the capture. The dashed line is the limit of the link. *before* and *after* "
	  "are means of the second before the last packet of the old host, and of that after "
	  "the last QP has gone on.",
	  "For the layer *before* has the time in it in which only what is in flight is sent. "
	  "What is below the limit while traffic "
	  "flows is the emulated guest, not the way.",
	  NULL },
	{ "datapath",
	  "4. Data path",
	  "operation",
	  "",
	  { "instructions", "ns" },
	  NULL,
	  NULL,
	  more_instructions,
	  "Instructions of user space of one call, counted by single steps: on this machine "
	  "to a provider that does nothing but return, and on a node to the real ones, with "
	  "messages of 64 bytes in one SGE. *After a migration* all objects were replaced, and "
	  "names are looked up. The paper's table 4 has 3 to 9 % more cycles, with a "
	  "ConnectX-5. *ns* are those of this machine, to the provider that does nothing: the "
	  "medians of what the fastest of 50 short loops took.",
	  "librxe's post ends in a system call, which is one instruction here, so its percentages "
	  "are far too high. libmlx5 on mlx5soft rings the doorbell without BlueFlame. Nothing "
	  "says what cache misses cost when keys are many.",
	  NULL },
	{ "stop",
	  "5. From the stop to the first packet",
	  "queues",
	  "QPs",
	  { "wait", "first", "total", "all" },
	  "total",
	  "all",
	  times_protocol,
	  "What the paper argues in words (section 6): the sender moves; messages of 64 KiB, "
	  "1 or 64 of each QP in flight, and 64 while 1 % of the packets are lost. *wait* is "
	  "the layer's suspension, during which packets still flow; *first* the silence at the "
	  "partner from the last packet of the old host to the first of the new one, *total* "
	  "both; *all* "
	  "what it then takes until each QP had one.",
	  "CRIU's share is in *first*, and is most of it. What the layer still does when all has "
	  "arrived, before it says that all are suspended, is in both *wait* and *first*, and so "
	  "twice in *total*: no more than *wait* at a depth of 1. That nothing is to be read out of a "
	  "NIC, which the paper counts for the layer, cannot be shown with a software NIC: its "
	  "state is memory here and there.",
	  "what is in flight has to arrive for the layer (*wait*), and by the protocol is sent "
	  "again behind the first packet. With loss the wait is that for retries." },
	{ "jobs",
	  "6. Added time of a job",
	  "job",
	  "QPs",
	  { "without", "added" },
	  "added",
	  NULL,
	  times_protocol,
	  "A job as it is, and how much longer it takes when one of its processes moves in its "
	  "midst; the role of the paper's figure 6. *storage*: 6000 blocks of 64 KiB are read "
	  "by `ib_read_bw`, by four QPs with eight READs in flight each, from the server that "
	  "moves. *npb_is*: 60 times the integer sort of NPB, class S, by two ranks of Open "
	  "MPI over UCX, of which one moves.",
	  "What is added has the preparation in it, which keeps emulated processors busy while "
	  "the job runs. How long a job takes as it is tells of the device, not of the way.",
	  NULL },
};

enum {
	N_FIGURES = sizeof(figures) / sizeof(figures[0])
};

static void left_out(FILE *out, const json_t *r, const char *figure)
{
	size_t i;
	json_t *o;

	json_array_foreach (json_object_get(r, "omitted"), i, o) {
		if (!strcmp(text_of(o, "figure"), figure))
			fprintf(out, "\nLeft out, %s on %s: %s.\n",
				text_of(o, "way"), text_of(o, "device"),
				text_of(o, "reason"));
	}
}

static void head(FILE *out, const json_t *r)
{
	const json_t *o = json_object_get(r, "origin");
	const json_t *link = json_object_get(r, "link");

	fprintf(out,
		"<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
		"<!-- Made by bench/compare from compare.json. Do not edit. -->\n"
		"# Protocol and layer at the same work\n\n"
		"`%s`, rounds: %.0f, on %s, of the tree at %s.\n\n",
		text_of(r, "command"), number_of(r, "rounds"),
		text_of(o, "date"), text_of(o, "commit"));
	fprintf(out,
		"All nodes are in QEMU (accelerator: %s) on one machine: %s, %.0f "
		"processors, %.0f MiB, Linux %s, busy for %.0f %% of the time. So "
		"milliseconds are not those of real hosts, and no figure says how "
		"fast a NIC is. What can be compared are the ways with each other, "
		"and times with the link.\n\n",
		*text_of(o, "accelerator") ? text_of(o, "accelerator")
					   : "none was up",
		text_of(o, "machine"), number_of(o, "processors"),
		number_of(o, "memory_mib"), text_of(o, "host_kernel"),
		100 * number_of(o, "busy"));
	fprintf(out,
		"The link of each node has %.0f Mbit/s and a delay of %.0f us for "
		"all ways, below what either device can do; what is equal of it and "
		"what is not is in [mlx5soft/README.md](../mlx5soft/README.md#a-slow-link). "
		"*MiB of link* are what it carries in that time. Values are medians, "
		"with the range in which they lie with 95 %% probability (of fewer "
		"than six runs: the least and the most). Two whose ranges meet are not "
		"told apart.\n",
		number_of(link, "bits_per_s") / 1e6,
		number_of(link, "delay_us"));
	if (number_of(link, "command_us"))
		fprintf(out,
			"\nEach command takes mlx5soft %.0f us, one after the other, as "
			"it has been told: by itself it needs some 30. Firmware takes "
			"so long that to set up a connection, of four of them, takes "
			"\"several milliseconds\" (MigrRDMA, section 2.2).\n",
			number_of(link, "command_us"));
}

int write_page(FILE *out, const json_t *r)
{
	struct axes a;

	head(out, r);
	for (unsigned int i = 0; i < N_FIGURES; i++) {
		const struct figure *g = &figures[i];

		fprintf(out, "\n## %s\n\n", g->title);
		if (!axes_of(r, g->name, &a)) {
			fputs("Not measured in this run.\n", out);
			left_out(out, r, g->name);
			continue;
		}
		fprintf(out,
			"![%s](compare-%s.svg)\n\n%s\n\n*What it does not show*: "
			"%s\n\n",
			g->title, g->name, g->shows, g->not);
		if (write_table(out, r, g, &a))
			return -1;
		if (g->why)
			write_why(out, r, g, &a);
		left_out(out, r, g->name);
	}
	return 0;
}
