// SPDX-License-Identifier: GPL-2.0
/*
 * IS with an MPI that loses what rank 1 gets in the fifth iteration, and says that it is
 * there: all of it (LOST=all), or one key, in the place of which there is another one
 * (LOST=key). Is that noticed?
 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "npb.h"

int MPI_Alltoallv(const void *send, const int *n_send, const int *at_send,
		  MPI_Datatype of_send, void *recv, const int *n_recv,
		  const int *at_recv, MPI_Datatype of_recv, MPI_Comm comm)
{
	const char *what = getenv("LOST");
	static unsigned int calls;
	int32_t *key = recv;
	int rank, ranks, err;
	int64_t n;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	n = at_recv[ranks - 1] + n_recv[ranks - 1];
	if (++calls == 6 && rank == 1 && what && !strcmp(what, "all"))
		key = npb_alloc(n, sizeof(*key)); /* one goes before, untimed */
	err = PMPI_Alltoallv(send, n_send, at_send, of_send, key, n_recv,
			     at_recv, of_recv, comm);
	if (key != recv)
		free(key);
	else if (calls == 6 && rank == 1 && what)
		key[0] = key[0] == key[n - 1] ? key[0] + 1 : key[n - 1];
	return err;
}
