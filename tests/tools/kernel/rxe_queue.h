/* SPDX-License-Identifier: GPL-2.0 */
/* for rxe_migr_state.c in user space: see rxe.h */
