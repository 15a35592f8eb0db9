// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "arena.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

/* where nobody maps anything unless he asks for it, and ThreadSanitizer lets him */
#ifdef __SANITIZE_THREAD__
#define HINT ((char *)0x1000000000)
#else
#define HINT ((char *)0x200000000000)
#endif

struct arena {
	char *at; /* the reserved range */
	size_t bytes, used;
	bool mapped;
	bool open; /* memory is taken out of it */
};

static struct arena arenas[2];
static struct arena *kept = arenas, *last = arenas;

static struct arena *other(void)
{
	return kept == arenas ? arenas + 1 : arenas;
}

static void reserve(void)
{
	char *at = mmap(HINT, 2 * ARENA_BYTES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return;
	arenas[0].at = at;
	arenas[1].at = at + ARENA_BYTES;
}

void arena_reserve(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, reserve);
}

uintptr_t arena_next(void)
{
	return (uintptr_t)other()->at;
}

int arena_map(uintptr_t at, size_t bytes, int fd)
{
	struct arena *a = other();
	bool reserved = a->at && at == (uintptr_t)a->at;
	void *p;

	if (!bytes || bytes > ARENA_BYTES)
		return EINVAL;
	p = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | (reserved ? MAP_FIXED : MAP_FIXED_NOREPLACE), fd,
		 0);
	if (p == MAP_FAILED)
		return errno;
	if ((uintptr_t)p != at) { /* an old kernel takes it for a hint */
		munmap(p, bytes);
		return EEXIST;
	}
	*a = (struct arena){ p, bytes, 0, true, true };
	last = a;
	return 0;
}

static void unmap(struct arena *a)
{
	if (a->mapped)
		mmap(a->at, a->bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		     -1, 0);
	a->mapped = a->open = false;
}

/* --- the provider --- */

/* It wants whole pages. */
static void *allocate(size_t bytes, void *arena)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (bytes + page - 1) & ~(page - 1);
	struct arena *a = arena;
	char *p;

	if (!a->open)
		return aligned_alloc(page, whole);
	if (whole < bytes || whole > a->bytes - a->used) {
		errno = ENOMEM;
		return NULL;
	}
	p = a->at + a->used;
	a->used += whole;
	return p;
}

static void release(void *p, void *arena)
{
	const struct arena *a = arena;
	uintptr_t at = (uintptr_t)p - (uintptr_t)a->at;

	if (at >= ARENA_BYTES)
		free(p);
}

/* It is loaded if a context is its, and else not needed. */
static void *mlx5_function(const char *name)
{
	void *lib = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = lib ? dlsym(lib, name) : NULL;

	if (lib)
		dlclose(lib);
	return function;
}

bool arena_is_taken(struct ibv_context *real)
{
	bool (*is_mlx5)(struct ibv_device *device);

	is_mlx5 = mlx5_function("mlx5dv_is_supported");
	return is_mlx5 && is_mlx5(real->device) &&
	       mlx5_function("mlx5dv_set_context_attr");
}

int arena_give(struct ibv_context *real)
{
	const struct mlx5dv_ctx_allocators allocators = { allocate, release,
							  last };
	int (*set)(struct ibv_context *ctx, enum mlx5dv_set_ctx_attr_type type,
		   void *attr);

	if (!arena_is_taken(real))
		return EOPNOTSUPP;
	set = mlx5_function("mlx5dv_set_context_attr");
	return set(real, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, (void *)&allocators);
}

size_t arena_used(void)
{
	return last->used;
}

void arena_close(void)
{
	last->open = false;
}

void arena_keep(void)
{
	if (last != kept)
		unmap(kept);
	kept = last;
}

bool arena_is_used(void)
{
	return kept->mapped;
}

void arena_drop(void)
{
	if (last != kept)
		unmap(last);
	last = kept;
}
