/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The move of a container by the layer: its processes, those that theirs are connected
 * to, and what they are told. What they say is not trusted.
 */
#ifndef MIGRD_LAYER_H
#define MIGRD_LAYER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "client.h"

enum {
	MOST_HOST = 256, /* of a name, with the 0 behind it */
	MOST_ID = 64,
	MOST_CONTAINER = 64, /* bytes of its name */
	MOST_PROCS = 48,     /* a daemon has 64 connections */
	QPNS = 1 << 24,	     /* so many numbers of QPs there are */
	PATIENCE_MS = 30000, /* beyond what a word is given */
	MOST_SAID = 2 * ANSWER_BYTES,
	LINE_MS = 1,		 /* and in a round for each line of many */
	QPS_A_SECOND = 25,	 /* that are replaced, at least */
	MOST_BUDGET_MS = 600000, /* which a word may be given */
};

struct layer_proc;

struct layer_qp {
	uint32_t qpn, real;	  /* for the program, and for the device */
	uint32_t next;		  /* what is made ahead for the device, or 0 */
	struct in6_addr next_gid; /* of that, where the container is to go */
	uint32_t led; /* where its next one was led to ahead, or 0 */
	struct in6_addr led_gid;
	uint32_t peer_qpn, at_qpn;   /* so of its peer */
	struct in6_addr gid, at_gid; /* its own, and that of its peer */
	bool connected;

	/* of a partner's, what it had made ahead that its kernel has said to be its own; or 0 */
	uint32_t owned;
	struct in6_addr owned_gid;

	/* it gets datagrams at the port of @gid; where it was proven to be before, or 0 */
	bool is_datagram;
	uint32_t was;
	struct in6_addr was_gid;

	/* that has its peer, or NULL if nobody cares; and the GID that it had in the end */
	struct layer_proc *to;
	struct in6_addr to_gid;
};

struct layer_key {
	uint32_t virtual, real;
};

/* what a process has said to "names"; QPs are ordered by their numbers */
struct layer_names {
	struct layer_qp *qps;
	struct layer_key *keys;
	struct in6_addr *destinations; /* of its datagrams */
	size_t n_qps, n_keys, n_destinations;
	bool more_destinations;
};

struct layer_proc {
	struct conn conn;
	bool open;
	char host[MOST_HOST], id[MOST_ID];
	bool is_lent; /* whoever else opens it has it */
	bool by_gid; /* that is an address of its QPs, which may be a container's */
	struct in6_addr *reached; /* other ones, where the same host answers */
	size_t n_reached;
	bool is_mover;
	int inner; /* its number in the container */
	struct layer_names names;

	/* lines that are to be said to it */
	char *text;
	size_t bytes, room, lines;
	bool failed, no_memory;
	char reason[512]; /* why it has failed */
	json_t *answer;	  /* to the last one */
	size_t said;	  /* what that counts for */

	bool is_replaced; /* a partner, as far as anybody knows */
	bool is_lost;	  /* the others go on without it */
};

enum {
	LAYER_HOSTS = 16,
};

/* connections to daemons that are not bound to a process */
struct layer_hosts {
	struct {
		char name[MOST_HOST];
		struct conn conn;
	} all[LAYER_HOSTS];
	size_t n;
	struct conn spare[MOST_PROCS]; /* to the container's next host */
	size_t spares;
	char silent[LAYER_HOSTS][MOST_HOST]; /* see layer_ask_once() */
	size_t n_silent;
};

struct layer {
	SSL_CTX *ctx;
	const char *port, *container;
	const char *
		target; /* the host where the container is to go, if it is known */
	unsigned int budget; /* ms */
	/* ms, in the place of PATIENCE_MS and what a word is given, if it is not 0 */
	unsigned int hurry;
	char local[MOST_HOST];
	bool ahead;	 /* somebody makes things where the container will be */
	bool told_ahead; /* and knows whom these will be connected to */
	long long taped; /* commands of movers that were so spared */
	long long late; /* queue pairs that partners made when all was suspended */
	struct layer_proc *procs[MOST_PROCS]; /* the container's come first */
	size_t n, movers;
	struct layer *others;	  /* that may send datagrams to it, or NULL */
	struct layer_port *ports; /* where its own are sent to */
	struct layer_hosts hosts;
	bool is_busy;	   /* somebody else had one of them open */
	char reason[1024]; /* why something has failed: the first reason */
	double check, suspend, replace_partners, hold, restore, exchange,
		connect, resume; /* ms */
};

__attribute__((format(printf, 2, 3))) bool layer_fail(struct layer *l,
						      const char *fmt, ...);
/* the same, as a process has failed: the first reason is its own, too */
__attribute__((format(printf, 3, 4))) bool
layer_proc_fails(struct layer *l, struct layer_proc *p, const char *fmt, ...);
double layer_clock(void); /* ms */
/* for so long, or until nobody waits for us any more: false, that is the end of stdin */
bool layer_is_waited_for(int ms);

/* layer_talk.c */

/* a line for the process, which layer_round() sends */
__attribute__((format(printf, 2, 3))) void layer_tell(struct layer_proc *p,
						      const char *fmt, ...);

/* how many of its QPs lead to somebody who is replaced, too */
unsigned int layer_replaced(const struct layer_proc *p);

/* ms for a word that does something to each of its queue pairs */
unsigned int layer_limit(const struct layer *l, const struct layer_proc *p);

/* nothing is to be sent any more */
void layer_unsay(struct layer_proc *p);

/* an answer of a daemon or a process, to be freed; NULL, and the reason in @reason */
json_t *layer_ask(struct conn *c, const char *line, long long deadline,
		  char *reason, size_t bytes);
/* the same; @err: that of a refusal, or 0 */
json_t *layer_ask_err(struct conn *c, const char *line, long long deadline,
		      int *err, char *reason, size_t bytes);

/**
 * layer_weight - what an answer counts for: its length, or what it will take, if it has more
 * parts than an answer of the layer's would in so many bytes
 *
 * Of ANSWER_BYTES of the smallest lists a gigabyte would come.
 */
size_t layer_weight(const char *line, size_t length);

/* the same of a line that has come; NULL, too, if it counts for more than ANSWER_BYTES */
json_t *layer_parse(const char *line, size_t length, char *reason,
		    size_t bytes);

/* bind a connection to a process */
bool layer_open(struct layer *l, struct layer_proc *p, long long deadline,
		char *reason, size_t bytes);
void layer_close(struct layer_proc *p);

/* layer_round.c */

/**
 * layer_round - say to all what they are to be told, and hear what they answer
 *
 * They do it at the same time, and nobody waits for another one. Who fails hears no more.
 * The connection is closed if nobody can tell any more what an answer belongs to; so it is
 * of who answers nothing for PATIENCE_MS and its limit, or takes longer for all than that,
 * and LINE_MS for each of its lines.
 *
 * So it is, too, of who says much when all together say more than MOST_SAID, see
 * layer_weight().
 *
 * Return: false if one of them has failed
 */
bool layer_round(struct layer *l);

/* layer_names.c */

/* ask all who are there for their names */
bool layer_get_names(struct layer *l);
bool layer_names_parse(struct layer_names *n, const json_t *answer,
		       char *reason, size_t bytes);
void layer_names_free(struct layer_names *n);
/* of a mover others say what it will have: layer_lead() */
void layer_names_no_next(struct layer_names *n);
/* Each may be told to all others; it fails if it has too many. */
bool layer_names_few_keys(struct layer *l, struct layer_proc *p);
struct layer_qp *layer_names_qp(const struct layer_names *n, uint32_t qpn);

/* layer_hosts.c */

/**
 * layer_ask_host - ask a daemon; the connection stays for the next time
 * @by_gid: it is any host's with that address
 *
 * Return: the answer, to be freed; NULL, and the reason in @reason
 */
json_t *layer_ask_host(struct layer *l, const char *name, bool by_gid,
		       const char *line, long long deadline, char *reason,
		       size_t bytes);

/**
 * layer_ask_once - the same, where all may be suspended
 *
 * For PATIENCE_MS; who does not answer is not asked again, until layer_check_owners() or
 * layer_prove_next() begins.
 */
json_t *layer_ask_once(struct layer *l, const char *name, bool by_gid,
		       const char *line, char *reason, size_t bytes);

/* As many connections to the container's next host as it has processes: to open one takes
 * longer than all that is said there, and its daemon may have no place for them later.
 */
bool layer_open_spare(struct layer *l);
/* false if one of these has ended, as far as is seen: nothing was asked there yet */
bool layer_target_lives(struct layer *l);
bool layer_take_spare(struct layer *l, const char *host, struct conn *c);

void layer_hosts_end(struct layer *l);
bool layer_is_id(const char *id);

/* the process that has the peer of a QP, and its host */
bool layer_ask_whose(struct layer *l, const struct layer_qp *qp, char *host,
		     char *id, char *reason, size_t bytes);

/* Of a host that was found by a GID nothing is believed about QPs at other ones, unless it
 * answers there, too.
 *
 * Return: false, and the reason in @reason, if it does not
 */
bool layer_reach(struct layer *l, struct layer_proc *p,
		 const struct in6_addr *gid, char *reason, size_t bytes);
/* It has. */
bool layer_is_reached(const struct layer_proc *p, const struct in6_addr *gid);

/* Of who names QPs to be sent datagrams to, or, with @all, to be connected to, that are not its
 * own nothing is believed: it fails. Daemons are not asked of what layer_prove_next() has
 * proven, nor of what was made by a shadow process that migr-ctr has told of.
 */
void layer_check_owners(struct layer *l, bool all);

/* Which of the queue pairs that partners have made ahead are theirs? Of others, and of who
 * cannot be asked, layer_check_owners() asks when they are used.
 */
void layer_prove_next(struct layer *l);

void layer_host_of(const struct in6_addr *gid, char *host);

/* layer_find.c */

/* the processes of the container on @host: inner numbers and IDs, as many as there are */
struct layer_found {
	char id[MOST_ID];
	int inner;
};
bool layer_processes(struct layer *l, const char *host, long long deadline,
		     struct layer_found found[MOST_PROCS], size_t *n,
		     char *reason, size_t bytes);

/* open the container's processes, and those that have their peers */
bool layer_check(struct layer *l);

/* whose the peers are of QPs that are connected by now; finds nobody new */
bool layer_match(struct layer *l);

/* layer_datagrams.c */

/*
 * Where QPs of datagrams are now is believed of those that are proven to be the movers' now.
 * If there are some, connections are opened to all who may send to them: at the hosts that
 * the container sends datagrams to, at this one and where it is to go. Who cannot be told is
 * named.
 */
bool layer_prove_datagrams(struct layer *l);

/* When all is suspended: are what the movers have still theirs? */
bool layer_prove_datagrams_still(struct layer *l);

/* All of them learn where datagrams to the container's QPs are to go, as it does itself. */
void layer_tell_datagrams(struct layer *l);

void layer_free_others(struct layer *l);

/* layer_record.c */

/**
 * layer_record - write what shadow processes of the container's processes have to make
 *
 * A line "records" with the length of the next one, a list in JSON: their numbers in the
 * container, and what they have answered. Who cannot be made before he is there is left out,
 * and says so.
 *
 * Return: false if a process does not answer; nothing has been stopped
 */
bool layer_record(struct layer *l, FILE *f);

/**
 * layer_tell_ahead - write whom their queue pairs will be connected to, unless that has been
 * told
 *
 * A line "peers", and a list in the same way: their numbers in the container, and lists of
 * a QP's number, the real one of its peer, and that one's GID. Partners have their new ones,
 * or, before they are suspended, have made them: then of all movers, or nothing is told.
 * It may be of no use, and nothing depends on it.
 */
void layer_tell_ahead(struct layer *l, bool suspended, FILE *f);

/**
 * layer_lead - read what queue pairs shadow processes have connected, and lead those that
 * partners have made there
 * @bytes: of the line that comes
 *
 * A list of the numbers of processes in the container, "pid", and, "made", lists of a QP's
 * number, its real one there, and its GID. Who cannot be led is connected later.
 *
 * Return: false if it is none
 */
bool layer_lead(struct layer *l, const char *bytes, FILE *f);

/* count what was spared, and say who was not made before he was there, and why: of their last
 * answers, to "replace" or "connect" */
void layer_note_presetup(struct layer *l);

/* layer_connect.c */

/* Say to @p where its QPs lead to now; or, with @ahead, what is made ahead will. */
void layer_tell_peers(struct layer *l, struct layer_proc *p, bool ahead);
/* ms since *@begin, which is now then */
double layer_since(double *begin);
/* nobody has failed, and nothing is to be sent */
void layer_begin_anew(struct layer *l);
/* It has failed, is named, and told nothing any more. */
void layer_lose(struct layer_proc *p);
/* Who has failed does not keep the others from going on. */
void layer_go_on(struct layer *l);
/* a word for those from @i to before @end */
bool layer_word_for(struct layer *l, size_t i, size_t end, const char *word);
void layer_replace_movers(struct layer *l);
/* false, and the first of them is the reason, if processes of the container are lost */
bool layer_connect(struct layer *l, double *begin);

/* layer_move.c */

/*
 * Partners make their new queue pairs before anybody is suspended. Who refuses does so later.
 * Return: false if one does not answer; nothing has been stopped
 */
bool layer_prepare(struct layer *l);

/*
 * Partners whose new queue pairs were led to others than the container has now get other ones.
 * Return: are there some?
 */
bool layer_led_astray(struct layer *l);

bool layer_stop(struct layer *l);

/**
 * layer_start - connect all again
 * @host: where the container runs now
 * @other: or there, if nobody has said which; may be NULL
 * @patience_ms: for so long it may not be there
 *
 * Whoever is gone, or does not do what it is told, is left out, and named.
 *
 * Return: false if that is a process of the container
 */
bool layer_start(struct layer *l, const char *host, const char *other,
		 long long patience_ms);

#endif
