#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Parts of lab by themselves: for how long an answer about KVM is believed, who
# holds the toolbox's root for lab ssh, lab reboot of a node that dies, from where a
# root is made, make soak, a bench on a lab that was up before, devices of containers, and
# how they move.

. "$(dirname "$0")/lib.sh"

. "$tree/vm-images/lab/options.sh"

images=$tmp/images
toolbox=false # whose guests do not run
kvm=$tmp/kvm  # which the host need not have
: >"$kvm"
mkdir "$images"
answer() { accel | tail -n 1; }

say "whether there is KVM is asked once, after each boot of the host"
echo "kvm of-another-boot" >"$images/accel"
[ "$(answer)" = tcg ] || fail "an old answer is believed"
echo "kvm $(cat /proc/sys/kernel/random/boot_id)" >"$images/accel"
[ "$(answer)" = kvm ] || fail "it is asked again"

say "but not when it was not there, nor for long when time was up"
rm "$images/accel" "$kvm"
[ "$(answer)" = tcg ] || fail "there is none"
: >"$kvm"
toolbox=$tmp/guest
printf '%s\n' '#!/bin/sh' 'exit 124 # as timeout would' >"$toolbox"
chmod +x "$toolbox"
[ "$(answer)" = tcg ] || fail "it has not answered"
printf '%s\n' '#!/bin/sh' 'echo lab: probe ok' >"$toolbox"
[ "$(answer)" = tcg ] || fail "it is asked again at once"
# shellcheck disable=SC2317,SC2329 # accel calls it
date() { echo later; }
[ "$(answer)" = kvm ] || fail "it is not asked again"
unset -f date

# The command, in a shell that has lab's functions, tools that are none, and the lock
of_lab()
{
	# shellcheck disable=SC2016 # expanded there
	PATH=$tmp/bin:$PATH bash -euc 'c=$1; set -- --help; . "$0" >/dev/null
		toolbox=$dir/toolbox; take_lock; eval "$c"' "$lab" "$1"
}

mkdir "$tmp/bin" "$LAB_DIR"
printf '%s\n' '#!/bin/sh' 'shift 3; exec "$@"' >"$tmp/bin/ip"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'until [ -e "${0%/*}/go" ]; do sleep 0.1; done' \
	'exec "$@"' >"$LAB_DIR/toolbox"
chmod +x "$tmp/bin/ip" "$LAB_DIR/toolbox"

say "who holds the toolbox ends with the lab, while it still makes it, too"
of_lab hold_toolbox
flock -w 10 "$LAB_DIR/lock" true || fail "it has the lock"
pid=$(cat "$LAB_DIR/toolbox.pid")
! of_lab holds_toolbox || fail "nothing is there to join yet"
# shellcheck disable=SC2016 # expanded there
of_lab 'end "$dir/toolbox.pid" KILL'
! grep -qs '^State:.[^ZX]' "/proc/$pid/status" || fail "it is still at work"

say "it is joined when it is there"
of_lab hold_toolbox
touch "$LAB_DIR/go"
for i in {1..100}; do
	! of_lab holds_toolbox || break
	[ "$i" != 100 ] || fail "it does not come"
	sleep 0.1
done
of_lab dismantle
! pgrep -fx "tail -f $LAB_DIR/toolbox.pid" || fail "it runs on"

say "a node that its emulation has killed boots again, once"
# shellcheck disable=SC2016 # expanded there
boots_again() { of_lab 'accel=tcg new=(n2 '"$1"')
	start() { last_words "$1"; retire "$1"; mkdir "$dir/$1"; cp "$dir/oops" "$(console "$1")"; }
	start n1; rm -rf "$dir/gone" "$dir/reports"; again n1; ! again n1' 2>/dev/null; }
oops='[    3.2] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI'
printf '%s\n' "$oops" '[    3.3] Call Trace:' >"$LAB_DIR/oops"
boots_again n1 || fail "it does not"
[ -e "$LAB_DIR/gone/n1.1/console.log" ] || fail "the console is lost"
[ ! -e "$LAB_DIR/reports" ] || fail "a complaint: $(cat "$LAB_DIR/reports")"
! boots_again n3 || fail "one that was up before"
printf '%s\n' '[    3.1] BUG: KASAN: rxe_x' "$oops" >"$LAB_DIR/oops"
! boots_again n1 || fail "its first complaint is another one"
rm -r "$LAB_DIR/n1"

say "lab reboot: who waits for a guest sees that its QEMU has ended"
fake_node n1
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'read -r pid <n1/pid; kill -KILL $pid' \
	'while [ -n "$(tr "\0" . </proc/$pid/cmdline)" ]; do sleep 0.1; done 2>/dev/null' \
	>"$tmp/bin/ssh"
chmod +x "$tmp/bin/ssh"
! said=$(of_lab 'sleep() { die "it waits"; }; cmd_reboot n1' 2>&1) || fail "it succeeds"
[[ $said = *"n1 died while booting"* ]] || fail "it says: $said"
rm -r "$LAB_DIR/n1" "$tmp/bin/ssh"

say "a root comes from the host's mirror, however the host names it"
roots=$tmp/roots/vm-images
mkdir -p "$roots" "$tmp/apt"
cp "$tree/vm-images/mkroot" "$roots/"
echo hello >"$roots/some.packages"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'cat "${0%/*}/uri"' >"$tmp/apt/apt-get"
# That is mmdebstrap, with a list of sources as its input.
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/bash' 'echo "$@" | grep -o "include=[^ ]*" >"${0%/*}/got"' \
	'cat >>"${0%/*}/got"; mkdir "${@: -2:1}"' >"$tmp/apt/unshare"
chmod +x "$tmp"/apt/*

made_from() # INCLUDED MAIN SECURITY, for what apt says: LABEL URI LABEL URI
{
	rm -rf "$tmp/roots/build"
	printf '%s %s\n' "${@:4}" >"$tmp/apt/uri"
	PATH=$tmp/apt:$PATH "$roots/mkroot" some >/dev/null 2>&1 || fail "no root"
	cat >"$tmp/apt/wanted" <<-END
	include=$1
	deb $2 trixie main
	deb $2 trixie-updates main
	deb $2 trixie-backports main
	deb $3 trixie-security main
	END
	diff "$tmp/apt/wanted" "$tmp/apt/got" || fail "with $*"
}

a=http://a.example/debian/ s=http://s.example/security/ t=https://t.example/debian
made_from hello $a $s Debian $a Debian-Security $s
made_from hello,ca-certificates $t $s Debian $t Debian-Security $s
printf '%s\n' '# these' '' "$t	priority:1" "$a" >"$tmp/main.list"
echo $s >"$tmp/security.list"
made_from hello,ca-certificates $t $s Debian "mirror+file:$tmp/main.list/" \
	Debian-Security "mirror+file:$tmp/security.list/"

say "make soak: a failure does not cost the rest, and each pass has its own logs"
mkdir -p "$tmp/soak"/{tests,vm-images}
cp "$tree/Makefile" "$tmp/soak/"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'echo "$*" >>"$0.calls"; false' >"$tmp/soak/vm-images/toolbox"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'echo "$LAB_LOGS $LAB_MLX5SOFT $*" >>"$0.calls"' \
	'[ "$1" != --tier ]' >"$tmp/soak/tests/run"
chmod +x "$tmp/soak/tests/run" "$tmp/soak/vm-images/toolbox"
echo 'thorough || exit 0' >"$tmp/soak/tests/does_more.test"
printf '%s\n' '# tier: soak' 'thorough' >"$tmp/soak/tests/is_deep.test"
: >"$tmp/soak/tests/is_short.test"
soaks() # LOGS
{
	rm -f "$tmp/soak/tests/run.calls"
	! make -C "$tmp/soak" -s -o tried -o asan -o tsan -o points -o npb soak 2>/dev/null \
		</dev/null || fail "nothing failed"
	[ "$(cut -d' ' -f1 "$tmp/soak/tests/run.calls" | xargs)" = \
		"$(printf "$1/%s\n" soak thorough {client,server}-{4k,thp} | xargs)" ] ||
		fail "it ran: $(cat "$tmp/soak/tests/run.calls")"
	grep -qx '[^ ]*/thorough [^ ]* tests/does_more.test' "$tmp/soak/tests/run.calls" ||
		fail "those that do more: $(cat "$tmp/soak/tests/run.calls")"
	grep -q 'ctest .*build/tsan' "$tmp/soak/vm-images/toolbox.calls" ||
		fail "not under the thread sanitizer"
	grep -q 'FUZZ=[0-9]* ctest .*build/asan' "$tmp/soak/vm-images/toolbox.calls" ||
		fail "the fuzzers are not run for longer"
}
soaks "$LAB_DIR/tests"
say "of the tree, if there is no other lab; and the devices have sanitizers"
LAB_DIR='' soaks "$tmp/soak/build/tests"
! grep -v ' build/asan/.*/mlx5soft ' "$tmp/soak/tests/run.calls" ||
	fail "these have other devices"
LAB_LOGS=/x soaks /x

say "bench/scale: what others have left on the lab's consoles does not count"
bench=$tmp/bench
mkdir -p "$bench"/{bench,tests,vm-images}
cp "$tree/bench/scale" "$bench/bench/"
cp "$tree/tests/ending.sh" "$bench/tests/"
printf '%s\n' 'origin_begin() { :; }' 'origin_end() { echo origin; }' >"$bench/bench/origin.sh"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'cat >"$0.runs"' '[ ! -e "$0.json" ] || echo {} >"$2"' \
	>"$bench/vm-images/toolbox"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'echo "$*" >>"$0.calls"' \
	'case "$*" in' 'factor) echo 1 ;;' '*pkill*) ;;' \
	'*live_restore*) [ ! -e "$0.fails" ] || ! grep -qe "-n 64 -r" "$0.calls" && echo "{}" ;;' \
	'"check --new") [ -e "$0.looked" ] || ! : >"$0.looked" ;;' 'esac' >"$bench/lab"
chmod +x "$bench/lab" "$bench/vm-images/toolbox"
"$bench/bench/scale" 1 2>/dev/null || fail "it ended: $(cat "$bench/lab.calls")"
[ "$(grep -c live_restore "$bench/lab.calls")" = 14 ] ||
	fail "it did: $(cat "$bench/lab.calls")"

say "bench/scale: what fails is one of many, and an old result is not a new one"
touch "$bench/vm-images/toolbox.json" "$bench/lab.fails"
: >"$bench/lab.calls"
"$bench/bench/scale" 1 >"$tmp/out" 2>/dev/null || fail "it ended: $(cat "$bench/lab.calls")"
grep -qx origin "$tmp/out" || fail "no origin"
if [ "$(grep -cx '{}' "$bench/vm-images/toolbox.runs")" != 7 ] ||
	! grep -qx '{"qps":64,"srq":1,"failed":1}' "$bench/vm-images/toolbox.runs" ||
	[ "$(wc -l <"$bench/vm-images/toolbox.runs")" != 14 ]; then
	fail "runs: $(cat "$bench/vm-images/toolbox.runs")"
fi
rm "$bench/vm-images/toolbox.json"
"$bench/bench/scale" 1 >"$tmp/out" 2>/dev/null
if [ -s "$tmp/out" ] || [ -e "$bench/build/bench/scale.json" ]; then
	fail "an old result"
fi
! "$bench/bench/scale" 65 2>/dev/null || fail "more runs than are looked at"

say "migr-ctr: containers that are made at once make their devices one after the other"
# shellcheck disable=SC2034 # the part's
prefix=$tmp/prefix state=$tmp/ctr
mkdir "$state"
# shellcheck source=/dev/null
. <(sed "s,/dev/infiniband,$tmp/dev,g" "$tree/vm-images/ctr/bundle.sh")
mknod() { sleep 0.1; (set -C; : >"$3") 2>/dev/null || fail "$3 was there"; }
made=()
for _ in 1 2 3; do
	make_nodes &
	made+=($!)
done
wait_for_each() { local p; for p; do wait "$p" || return; done; }
wait_for_each "${made[@]}" || fail "not all have their devices"

say "migr-ctr: how a container moves goes by the devices that it has open"
# shellcheck source=/dev/null
. <(sed "s,/proc/,$tmp/proc/,g; s,/sys/,$tmp/sys/,g" "$tree/vm-images/ctr/layer.sh")
# shellcheck disable=SC2317,SC2329 # parts call it
first_pid() { echo 100; }
is_under_layer() { [ -n "$layered" ]; }
has_open() # PID FILE...
{
	local i=3 f

	rm -rf "$tmp/proc/$1/fd"
	mkdir -p "$tmp/proc/$1"/{ns,fd}
	[ -e "$tmp/proc/$1/ns/pid" ] || ln -s "$tmp/proc/100/pids" "$tmp/proc/$1/ns/pid"
	for f in "${@:2}"; do ln -s "$f" "$tmp/proc/$1/fd/$((i++))"; done
}
moves() # HOW
{
	[ "$(moves_by)" = "$1" ] || fail "by $(moves_by) instead of $1"
}
mkdir -p "$tmp/proc/100" "$tmp/sys"/{module/rdma_rxe/parameters,class/infiniband/{rxe0,mlx5_0,siw0}} \
	"$tmp/sys/class/infiniband_verbs"/uverbs{0,1,2}
: >"$tmp/proc/100/pids"
i=0
for d in rxe0 mlx5_0 siw0; do
	echo $d >"$tmp/sys/class/infiniband_verbs/uverbs$i/ibdev"
	i=$((i + 1))
	echo "1: CA" >"$tmp/sys/class/infiniband/$d/node_type"
done
echo "4: RNIC" >"$tmp/sys/class/infiniband/siw0/node_type"
echo fabric | tee "$tmp/sys/class/infiniband"/{rxe0,siw0}/parent >/dev/null
has_open 100 /run/out
has_open 101 /dev/null
has_open 200
rm "$tmp/proc/200/ns/pid"
echo >"$tmp/proc/200/ns/pid" # of another container
ln -s /dev/infiniband/uverbs1 "$tmp/proc/200/fd/3"
for layered in '' yes; do
	: >"$tmp/sys/module/rdma_rxe/parameters/migr_key"
	moves protocol
	rm "$tmp/sys/module/rdma_rxe/parameters/migr_key"
	moves "$([ -n "$layered" ] && echo layer || echo protocol)"
done
has_open 101 /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm
moves layer
: >"$tmp/sys/module/rdma_rxe/parameters/migr_key"
moves protocol
for d in 1 2 3; do
	has_open 10$((d + 1)) "/dev/infiniband/uverbs$d"
	moves layer
	layered='' moves protocol
	has_open 10$((d + 1))
done
moves protocol

say "migr-ctr: rounds that are given up end for who is in the container, and for nobody else"
# shellcheck disable=SC2034 # the part's
parts=$tree/vm-images/ctr
# shellcheck source=/dev/null
. <(sed "s,/proc/,$tmp/proc/,g; s,/sys/fs/cgroup,$tmp/groups,g" "$tree/vm-images/ctr/runc.sh")
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'echo "$*" >>"${0%/*}/untracked"' >"$tmp/bin/migr-untrack"
chmod +x "$tmp/bin/migr-untrack"
mkdir -p "$tmp/groups/c1"
echo 1 >"$tmp/groups/cgroup.procs"
echo 100 >"$tmp/groups/c1/cgroup.procs"
ends_rounds() # PID GROUP: of its first process; whoever is told so
{
	# shellcheck disable=SC2034 # for first_pid
	its=$1
	echo "0::$2" >"$tmp/proc/100/cgroup"
	rm -f "$tmp/bin/untracked"
	(PATH=$tmp/bin:$PATH rounds_end) || true # as its callers do
	cat "$tmp/bin/untracked" 2>/dev/null || echo nobody
}
# shellcheck disable=SC2317,SC2329 # parts call it
first_pid() { [ -n "$its" ] && echo "$its"; }
[ "$(ends_rounds 100 /c1)" = 100 ] || fail "not its own"
[ "$(ends_rounds '' /c1)" = nobody ] || fail "it has ended meanwhile"
[ "$(ends_rounds 100 /)" = nobody ] || fail "it is in the group of all"

say "migr-ctr: what it does stands in its usage, and what its driver does in migr-mover(8)"
sed -n '/^# Usage/,/^$/p' "$tree/vm-images/migr-ctr" >"$tmp/usage"
mapfile -t commands < <(echo list; grep -oh '^cmd_[a-z]*' "$tree"/vm-images/{migr-ctr,ctr/*.sh})
for c in "${commands[@]}"; do
	grep -q "migr-ctr ${c#cmd_} \|migr-ctr ${c#cmd_}\$" "$tmp/usage" || fail "${c#cmd_} does not"
done
mapfile -t verbs < <(grep -o '^drive_[a-z]*' "$tree/vm-images/ctr/driver.sh")
for c in "${verbs[@]}"; do
	grep -q "^\.It Cm \(.* , \(Cm \)\?\)\?${c#drive_}\( \|$\)" "$tree/migrctl/man/migr-mover.8" ||
		fail "${c#drive_} does not"
done
