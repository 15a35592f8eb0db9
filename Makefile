# SPDX-License-Identifier: GPL-2.0
#
# The front door. Everything is compiled in the toolbox (vm-images/toolbox) and
# delivered to the nodes through build/stage.
#
#   make build           modules, libraries and programs, into build/stage
#   make points          the module whose QPs a test can stop at their n-th packet
#   make npb             the NAS kernels, for the nodes
#   make demo            the cluster, a migration, and what it looked like
#   make check           the unit tests, and on the cluster what twenty minutes have
#                        room for; the last line is "N passed, N failed"
#   make soak            the cluster's other tests, which take hours, what those of the
#                        check do for longer, fuzzers, leaks, the thread sanitizer
#   make debug           the kernel for lab up --kernel debug, and our module for it
#   make check-debug     the module's tests on that kernel
#   make deb             Debian packages, into build/deb
#   make install         programs and libraries on this host: DESTDIR=, PREFIX=
#   make lint            style and static checks
#   make format          bring C into the style that lint wants
#   make bench-hotpath   what the data path costs
#   make bench-scale     how migration grows with its load
#   make bench-mlx5      mlx5soft next to rdma_rxe
#   make bench-npb       what an MPI job pays for the move of a rank
#   make bench-compare   the protocol and the layer at the same work
#   make bench-blackout  how long a partner waits, next to the floor
#   make clean           remove what was built (not the images, nor results)
#   make distclean       remove everything under build/

TOOLBOX := vm-images/toolbox
STAGE   := build/stage

# Two builds in one tree take turns.
TURN    := mkdir -p $(STAGE) && flock build/.lock

build: toolbox module user key certs

toolbox: root-toolbox

root-toolbox root-node: root-%:
	@vm-images/mkroot $* >/dev/null

# Both at once: each waits for the network, and then for a processor.
roots:
	@$(MAKE) --no-print-directory -j2 root-toolbox root-node

images: toolbox
	@vm-images/mkimage >/dev/null

# The modified rdma_rxe, as $(STAGE)/rdma_rxe.ko
module: toolbox
	@$(TURN) sh -ec '\
		rxe-migr/build build/rxe; \
		install -C -m 644 build/rxe/rdma_rxe.ko $(STAGE)/'

# For nodes with the debug kernel
debug: build points
	@vm-images/mkkernel >/dev/null
	@$(TURN) sh -ec '\
		export KERNEL_HEADERS=$(CURDIR)/build/kernel-debug/src; \
		rxe-migr/build build/rxe-debug; \
		RXE_POINTS=1 rxe-migr/build build/rxe-debug-points; \
		mkdir -p $(STAGE)/debug/points; \
		install -C -m 644 build/rxe-debug/rdma_rxe.ko $(STAGE)/debug/; \
		install -C -m 644 build/rxe-debug-points/rdma_rxe.ko \
			$(STAGE)/debug/points/'

# For tests that stop QPs at chosen packets
points: toolbox
	@$(TURN) sh -ec '\
		RXE_POINTS=1 rxe-migr/build build/rxe-points; \
		mkdir -p $(STAGE)/points; \
		install -C -m 644 build/rxe-points/rdma_rxe.ko $(STAGE)/points/'

# The stock rxe with its bugs mended, for comparison
fixes: toolbox
	@$(TURN) sh -ec '\
		RXE_FIXES_ONLY=1 rxe-migr/build build/rxe-fixes; \
		mkdir -p $(STAGE)/fixes; \
		install -C -m 644 build/rxe-fixes/rdma_rxe.ko $(STAGE)/fixes/'

user: toolbox
	@$(TURN) $(TOOLBOX) sh -ec '\
		cmake -S . -B build/user -G Ninja -DCMAKE_INSTALL_PREFIX=/opt/migr \
			-DCMAKE_INSTALL_SBINDIR=bin -DCRIU_PLUGIN_DIR=criu \
			-DWIRESHARK_PLUGIN_DIR=lib/wireshark >build/install.log; \
		cmake --build build/user; \
		cmake --install build/user --prefix $(CURDIR)/$(STAGE) \
			>>build/install.log'

# For this host, which is Debian 13, or a folder: all but the module, and nothing of the
# lab. It is compiled in the toolbox; make install DESTDIR= PREFIX=
# Folders that are there stay as they are, and programs that run as they were.
PREFIX ?= /usr/local
install: toolbox
	@$(TURN) $(TOOLBOX) sh -ec '\
		cmake -S . -B build/install -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) \
			-DBUILD_TESTING=OFF >build/install.log; \
		cmake --build build/install; \
		rm -rf build/installed; umask 022; \
		DESTDIR=$(CURDIR)/build/installed cmake --install build/install --strip \
			>>build/install.log'
	@umask 022; find build/installed -type d -printf '%P\0' | \
		xargs -0 -I% mkdir -p "$(DESTDIR)/%"
	@umask 022; find build/installed ! -type d -printf '%P\0' | \
		xargs -0 -I% cp -P --remove-destination build/installed/% "$(DESTDIR)/%"
	@[ -n "$(DESTDIR)" ] || ldconfig

# Packages for Debian 13, in build/deb, and what lintian says of them
deb: toolbox
	@$(TURN) debian/build build/deb

# The NAS kernels, for the nodes, and the headers of MPI, which only they want. The
# node has the library, and what that needs; here it is only told apart.
npb: toolbox
	@vm-images/mkroot mpi >/dev/null
	@$(TURN) sh -ec '\
		mpi=$$(vm-images/mkroot mpi)/usr/lib/x86_64-linux-gnu/openmpi; \
		$(TOOLBOX) cmake -S bench/npb -B build/npb -G Ninja \
			-DMPI_C_COMPILER=none -DMPI_C_LIB_NAMES=mpi \
			-DMPI_C_HEADER_DIR=$$mpi/include \
			-DMPI_mpi_LIBRARY=$$mpi/lib/libmpi.so \
			-DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined \
			>build/npb.log; \
		$(TOOLBOX) cmake --build build/npb >>build/npb.log; \
		DESTDIR=$(CURDIR)/$(STAGE) $(TOOLBOX) cmake --install build/npb \
			--prefix / >>build/npb.log'

# The same for tests, with sanitizers
asan: toolbox
	@$(TURN) $(TOOLBOX) sh -ec '\
		[ -e build/asan/build.ninja ] || \
			cmake -S . -B build/asan -G Ninja -DSANITIZE=ON; \
		cmake --build build/asan'

# libmigrrdma with the thread sanitizer, for its unit tests
tsan: toolbox
	@$(TURN) $(TOOLBOX) sh -ec '\
		[ -e build/tsan/build.ninja ] || \
			cmake -S . -B build/tsan -G Ninja -DSANITIZE=thread; \
		cmake --build build/tsan'

# The key under which nodes believe each other that something has moved; made
# once, at random.
key:
	@mkdir -p $(STAGE)
	@[ -s $(STAGE)/cluster.key ] || ( \
		umask 077; \
		echo "1:$$(od -An -tx1 -N32 /dev/urandom | tr -d " \n")" \
			>$(STAGE)/cluster.new; \
		mv $(STAGE)/cluster.new $(STAGE)/cluster.key )

# Keys and certificates of the nodes for migrd
certs: toolbox
	@$(TURN) $(TOOLBOX) migrd/certs --lab $(STAGE)/migrd

# Debian's rxe may have changed since this was written.
tried: roots build images
	@tests/try-module

# The devices of cluster tests have the sanitizers, too: emulated guests are so
# slow that it hardly costs time.
SANITIZED := build/asan/mlx5soft/device/mlx5soft
check: tried asan points npb
	@LAB_MLX5SOFT=$(SANITIZED) tests/unit tests/run

# Not part of check: tests/soak, and what says "tier: soak" in its header. A
# failure does not end it, and each pass has its own logs.
soak: tried asan tsan points npb
	@export LAB_TIMEOUT_FACTOR=$${LAB_TIMEOUT_FACTOR:-4}; \
	export LAB_MLX5SOFT=$(SANITIZED) THOROUGH=1; \
	logs=$${LAB_LOGS:-$$(realpath -m "$${LAB_DIR:-build}/tests")}; bad=0; \
	$(TOOLBOX) env FUZZ=12 ctest --test-dir build/asan --no-tests=error -R '[.]fuzz' \
		--output-on-failure || bad=1; \
	$(TOOLBOX) ctest --test-dir build/asan --no-tests=error -L '^soak$$' -j 4 \
		--output-on-failure || bad=1; \
	$(TOOLBOX) env ASAN_OPTIONS=detect_leaks=1:$$ASAN_OPTIONS ctest \
		--test-dir build/asan --no-tests=error -L many_programs \
		--output-on-failure || bad=1; \
	$(TOOLBOX) ctest --test-dir build/tsan --no-tests=error \
		--output-on-failure || bad=1; \
	LAB_LOGS=$$logs/soak tests/run --tier soak || bad=1; \
	LAB_LOGS=$$logs/thorough tests/run \
		$$(grep -Lx '# tier: soak' $$(grep -lw thorough tests/*.test)) || bad=1; \
	for m in client server; do for p in 4k thp; do \
		LAB_LOGS=$$logs/$$m-$$p MOVER=$$m PAGES=$$p MOVES=20 \
			tests/run tests/3*-migrate-*.test || bad=1; \
	done; done; exit $$bad

# What the module does; everything is several times slower there. (20, 31 to 33,
# 36-both-ends, 38, 39, 43, 44, 52, 56 and 65 are about more of the same, containers, and
# devices of others: what of the module they use the others do, too.)
DEBUG_TESTS := 10-lab 30-migrate-1 34-lost-resume 35-blackout 36-inside 36-one-by-one \
	37-events 40-criu-contexts 41-criu-refusals 42-lossy 45-phases 50-forged \
	51-hostile-ioctl \
	53-library 53-probe 54-late 55-one-host 57-points 69-unload
check-debug: tried debug
	@LAB_KERNEL=debug LAB_MEM=2048 MOVES=2 THOROUGH=1 \
		LAB_TIMEOUT_FACTOR=$${LAB_TIMEOUT_FACTOR:-8} \
		tests/run $(DEBUG_TESTS:%=tests/%.test) tests/debug/*.test

demo: tried
	@tests/demo

bench-hotpath: fixes
bench-hotpath bench-scale bench-mlx5: bench-%: tried
	@bench/$*

# Without KVM class A takes some hours more: CLASSES=S is without it.
CLASSES ?= SA
bench-npb: npb tried
	@bench/npb/bench 3 $(CLASSES)

bench-compare: npb tried
	@bench/compare/bench

bench-blackout: tried
	@bench/blackout/bench

lint: toolbox
	@$(TOOLBOX) tests/lint

# Brings user-space C into the style that lint wants: make format [FILES=...]
FILES ?= $(shell git ls-files '*.c' '*.h' | grep -v ^rxe-migr/)
format: toolbox
	@$(TOOLBOX) clang-format -i $(FILES)

clean:
	@./lab down || true # it may have something to complain of
	@rm -rf build/user build/asan build/tsan build/npb build/rxe build/rxe-* build/sparse \
		build/stage build/tests build/install build/installed build/deb

distclean: clean
	@rm -rf --one-file-system build

.PHONY: build toolbox root-toolbox root-node roots images module user asan tsan npb \
	install deb key certs tried debug fixes points check check-debug soak demo lint format clean \
	distclean bench-hotpath bench-scale bench-mlx5 bench-npb bench-compare \
	bench-blackout
