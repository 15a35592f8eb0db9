/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NPB_CG_H
#define NPB_CG_H

#include <stddef.h>
#include <stdint.h>

/* A block of the matrix, its non-zeros row by row; columns count from its own. */
struct cg_block {
	uint32_t rows;
	size_t *start; /* of each row, and the end of the last one */
	uint32_t *column;
	double *value;
};

struct cg_matrix {
	uint32_t n;
	unsigned int nonzeros; /* random ones of each vector it is made of */
	double shift;
};

/* Rows and columns beyond the matrix are zero. */
void cg_make_block(struct cg_block *b, const struct cg_matrix *m, uint32_t row,
		   uint32_t rows, uint32_t column, uint32_t columns);
void cg_free_block(struct cg_block *b);

#endif
