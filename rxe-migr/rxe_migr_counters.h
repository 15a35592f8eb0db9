/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * hw_counters of the migration protocol: one table for the enum and the names.
 */
#ifndef RXE_MIGR_COUNTERS_H
#define RXE_MIGR_COUNTERS_H

#define RXE_MIGR_COUNTERS(_)						\
	_(NAK_STOPPED_SENT,	"migr_nak_stopped_sent")		\
	_(NAK_STOPPED_RCVD,	"migr_nak_stopped_rcvd")		\
	_(NAK_STOPPED_STALE,	"migr_nak_stopped_stale")		\
	_(RESUME_SENT,		"migr_resume_sent")			\
	_(RESUME_RCVD,		"migr_resume_rcvd")			\
	_(RESUME_REPEATED,	"migr_resume_repeated")			\
	_(RESUME_ACK_SENT,	"migr_resume_ack_sent")			\
	_(RESUME_ACK_RCVD,	"migr_resume_ack_rcvd")			\
	_(PROBE_SENT,		"migr_probe_sent")			\
	_(STOPPED_SENT,		"migr_stopped_sent")			\
	_(NOTICE_SENT,		"migr_notice_sent")			\
	_(MOVED_RCVD,		"migr_moved_rcvd")			\
	_(QUESTION_SENT,	"migr_question_sent")			\
	_(QUESTION_RCVD,	"migr_question_rcvd")			\
	_(STOPPED,		"migr_qp_stopped")			\
	_(PAUSED,		"migr_qp_paused")			\
	_(RESTORED,		"migr_qp_restored")			\
	_(TIMED_OUT,		"migr_qp_timed_out")			\
	_(STOPPED_DROPPED,	"migr_stopped_dropped")			\
	_(BAD_LENGTH,		"migr_bad_length")			\
	_(BAD_VERSION,		"migr_bad_version")			\
	_(BAD_KEY,		"migr_bad_key")				\
	_(BAD_MAC,		"migr_bad_mac")				\
	_(OLD_EPOCH,		"migr_old_epoch")			\
	_(EPOCH_TAKEN,		"migr_epoch_taken")			\
	_(BAD_ADDRESS,		"migr_bad_address")			\
	_(UNEXPECTED,		"migr_unexpected")

#define RXE_MIGR_CNT_ENUM(id, str)	RXE_CNT_MIGR_##id,
#define RXE_MIGR_CNT_DESC(id, str)	[RXE_CNT_MIGR_##id].name = str,

#endif /* RXE_MIGR_COUNTERS_H */
