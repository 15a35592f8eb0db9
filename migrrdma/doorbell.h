/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rxe's doorbell is a write() to the context's file (librxe's post_send()), which the kernel
 * refuses with EACCES to whose credentials are not the very ones that the file was opened
 * with (ib_safe_file_access()). The threads of a process share theirs. CRIU gives each its
 * own, equal ones, and it is a thread of the layer that opens the device then. So from then
 * on the same command is said by ioctl(), of which nobody asks that: what a thread writes
 * within a post, which has a section (section.h). So have those of the layer's own, and a
 * bind of a memory window: librxe has queued the request when it says that the doorbell
 * has failed, so it would be there twice.
 */
#ifndef MIGRRDMA_DOORBELL_H
#define MIGRRDMA_DOORBELL_H

/* the process has other contexts, and may have been restored */
void doorbell_moved(void);

#endif
