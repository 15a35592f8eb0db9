/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What both ends of a move have
 */
#ifndef MIGRCTL_MOVE_H
#define MIGRCTL_MOVE_H

#include "doors.h"
#include "journal.h"
#include "talk.h"

enum {
	NAME_MOST = 63,	   /* characters of a container's */
	FILES_MOST = 32,   /* that a runtime may name */
	READY_MS = 120000, /* in which an end has made ready for a move */
	WORK_MS = 600000,  /* in which CRIU has done its work */
	CLEAN_MS = 120000, /* in which it has cleaned up */
	AGAIN_MS = 1000,   /* after which the other end is asked once more */
};

/* where migr-ctr has its own, and the locks of all are */
#define MOVE_CONTAINERS "/var/lib/migr-ctr"

struct move {
	const char *name;    /* of the container */
	const char *runtime; /* whose it is */
	const char *other;   /* the host at the other end */
	struct journal journal;
	struct talk peer; /* the connection to it */
	struct doors doors;
	char images[JOURNAL_PATH + 16];
	struct doors layer; /* layer.h */
	char layer_at[JOURNAL_PATH + 32];
	int lock;	   /* of the container; 0: it is not ours */
	char reason[512];  /* why it has failed */
	char warning[512]; /* what is not as it should be, though it has not */
	bool by_doors; /* the reason is that, and runc and CRIU know more of it */
	uint64_t bytes; /* that have been sent, or taken */
};

/* false, and the reason is that */
__attribute__((format(printf, 2, 3))) bool move_fails(struct move *m,
						      const char *fmt, ...);

/* the same, by runc or CRIU */
bool move_fails_by_doors(struct move *m, const char *what);

/* what was to be done to the end of a move, and was not, is a warning */
void move_warns(struct move *m);

/* It has no connection, no doors and no journal yet. */
void move_init(struct move *m);

bool move_is_name(const char *name);

/**
 * move_lock - nobody else works on that container from now on, nor do what programs it starts
 *
 * Return: false if somebody does already
 */
bool move_lock(struct move *m);

/* The lock, the journal and the folder for images. @record as journal_new(), without the runtime */
bool move_begin(struct move *m, enum move_role role, json_t *record);

/* Does an address for RDMA move with what this spec is of? */
bool move_has_address(const json_t *spec);

/* the same for a move that has lost its process */
bool move_go_on(struct move *m);

/* The memory of the container, which was in images, is nowhere any more. */
void move_drop_images(struct move *m);

/* Nothing is left but the journal, and others may work on the container. */
void move_end(struct move *m);

/**
 * move_leave_doors - say a last word, and wait until runc and CRIU have ended
 *
 * What they have complained of is added to the reason, if that was by them.
 */
void move_leave_doors(struct move *m, const char *word);

/* so far, with the reason if there is one; what cannot be written down is the reason then */
bool move_set(struct move *m, enum move_state state);

/**
 * move_is_over - the same for the last one, with the warning; it is tried until that is known
 *
 * All that belongs to it is done; and if it were not written down would be done once more, to
 * whatever has that name by then.
 */
void move_is_over(struct move *m, enum move_state state);

/**
 * move_drive - the runtime does something: RUNTIME driver NAME VERB
 * @arg: or NULL
 * @input: what it gets; given back; or NULL
 * @output: the object that it tells, or NULL
 */
bool move_drive(struct move *m, const char *verb, const char *arg,
		json_t *input, json_t **output);

/* RUNTIME driver NAME VERB IMAGES [ARG], which is behind those doors from now on */
bool move_open_doors(struct move *m, struct doors *d, const char *folder,
		     const char *verb, const char *arg);

/* a stream to the other end, or from there: what a program writes, or reads */
bool move_give(struct move *m, char *const argv[]);
bool move_take(struct move *m, char *const argv[]);

/**
 * move_give_files - the files that a runtime has for a container, to the other end, or from there
 * @files: { "at": FOLDER, "names": [NAME...] }, as that runtime has told
 */
bool move_give_files(struct move *m, const json_t *files);
bool move_take_files(struct move *m, const json_t *files);

/**
 * move_ask - ask the other end what has become of the move
 *
 * Return: what that makes of it, or somebody's word that the other end is fenced; the same state
 * as before if nothing, and then the record has the reason
 */
enum move_state move_ask(struct move *m);

/* Does it wait for an other end that does not answer, or does not know? */
bool doubt_is(const struct journal *j);

/* of tar, which writes and reads so much at once: as much as a pipe has room for */
#define TAR_BLOCKS "-b128"

/* both ends; the move is that of an object that asks for it */
void source_run(struct talk *asker, const json_t *asked);
void source_check(struct talk *asker,
		  const json_t *asked); /* and nothing is done */
void target_run(struct talk *asker, const json_t *asked, const char *from);

/* Would it come here? */
void target_would(struct talk *asker, const json_t *asked);

/* what is left of one whose process has died, to its end */
void source_recover(struct move *m);
void target_recover(struct move *m);

/* One that is over here: tell the other end, which may be out of reach for a while. */
void source_forget(struct move *m);

/* One that is over here, and of which the other end has said nothing for a while: is there one that will? */
void target_forget(struct move *m);

#endif
