#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# No complaint on a console is lost: not one before the first look, not half a
# line, not that of a node that has gone; and without a lab all is not well.

. "$(dirname "$0")/lib.sh"

refused() # MESSAGE CMD...: it fails and says so
{
	local said

	! said=$("${@:2}" 2>&1) || fail "not noticed: ${*:2}"
	[[ $said = *"$1"* ]] || fail "'$1' is not in: $said"
}

say "no lab"
refused "no lab is up" "$lab" check
refused "no lab is up" "$lab" check --new

say "before the first look, and once only"
fake_node n1
fake_node n2
"$lab" check
console_says n2 "[    3.1] WARNING: CPU: 0 PID: 1 at rxe.c:1 rxe_x+0x1/0x2"
refused rxe_x "$lab" check
refused rxe_x "$lab" check --new
"$lab" check --new
refused rxe_x "$lab" check

say "a device that somebody keeps"
console_says n2 "[    3.9] unregister_netdevice: waiting for fabric to become free. Usage count = 2"
refused "waiting for fabric" "$lab" check --new

say "half a line"
printf '[    4.2] BU' >>"$LAB_DIR/n1/console.log"
"$lab" check --new
console_says n1 "G: unable to handle page fault"
refused "page fault" "$lab" check --new
"$lab" check --new

say "what a debug kernel takes for wrong in nf_tables, and what is wrong nearby"
splat() # WHERE
{
	console_says n1 "[    5.0] WARNING: suspicious RCU usage
[    5.1] $1 RCU-list traversed in non-reader section!!
[    5.2] Call Trace:
[    5.3]  <TASK>
[    5.4]  lockdep_rcu_suspicious.cold+0x4e/0x92
[    5.5]  </TASK>"
}
splat net/netfilter/nf_tables_api.c:4470
"$lab" check --new
console_says n1 "[    5.0] live_restore: vmalloc error: size 2, allocation failed
[    5.1] Call Trace:
[    5.2]  </TASK>"
"$lab" check --new
splat net/core/rxe.c:1
refused "suspicious RCU" "$lab" check --new
splat net/netfilter/nf_tables_api.c:4470
console_says n1 "[    5.6] BUG: rxe_y"
refused rxe_y "$lab" check --new

say "what comes amid what is meant"
half="[    5.0] live_restore: vmalloc error: size 2, allocation failed"
rest="[    5.2] Call Trace:
[    5.3]  <TASK>
[    5.4]  lockdep_rcu_suspicious.cold+0x4e/0x92
[    5.5]  ? rcu_read+0x4e/0x92
[    5.6]  </TASK>"
console_says n1 "[    4.8] WARNING: suspicious RCU usage
[    4.9] drivers/rxe.c:7 suspicious rcu_dereference_check() usage!
$half
[    5.1] BUG: rxe lost it
$rest"
said=$("$lab" check --new) && fail "not noticed"
for words in 'WARNING: suspicious RCU' 'BUG: rxe lost it'; do
	[[ $said = *"$words"* ]] || fail "'$words' is not in: $said"
done
[ "$(wc -l <<<"$said")" = 2 ] || fail "that was more: $said"

say "half of it has come, or all is not over"
console_says n1 "$half"
(sleep 1; console_says n1 "$rest") &
"$lab" check --new || fail "the first half"
wait $!
"$lab" check --new || fail "the second half"
console_says n1 "$half
[    5.1] BUG: rxe_z"
refused rxe_z "$lab" check --new
console_says n1 "[    5.9]  </TASK>"
"$lab" check --new
printf '[    5.7] WARNING: suspicious RCU usage\n' >>"$LAB_DIR/n1/console.log"
refused "suspicious RCU" "$lab" check --new

say "consoles that grow while they are looked at"
mkdir "$tmp/bin"
# From the second look on, a line comes after what was there to be counted.
cat >"$tmp/bin/tail" <<-"END"
	#!/bin/bash
	[ "$1" = -c ] || exec /usr/bin/tail "$@"
	[ ! -e "$0.counted" ] || grows=1
	touch "$0.counted"
	/usr/bin/tail "$@"
	[ -n "${grows-}" ] || exit 0
	sleep 0.2
	echo "[    6.0] more" >>"${@: -1}"
	echo "[    6.0] more"
END
chmod +x "$tmp/bin/tail"
growing() { rm -f "$tmp/bin/tail.counted"; PATH=$tmp/bin:$PATH "$lab" check --new; }
console_says n1 "[    5.9] BUG: rxe_w"
refused rxe_w growing
growing || fail "it is told again"
console_says n1 "$half"
(sleep 1; console_says n1 "$rest") &
growing || fail "the first half"
wait $!
growing || fail "the second half"

say "leaks that nobody could look for"
fake_node n3 6.12-debug
refused "n3: kmemleak cannot look" "$lab" check
kill "$(cat "$LAB_DIR/n3/pid")"
rm -r "$LAB_DIR/n3"

say "a device's complaint is told once, whether it has ended or not"
report="==7==ERROR: AddressSanitizer: heap-use-after-free"
echo "$report" >"$LAB_DIR/n1/mlx5.log"
refused "$report" "$lab" check
refused "$report" "$lab" check --new
"$lab" check --new
echo "vfu.c:1:2: runtime error: overflow" >>"$LAB_DIR/n1/mlx5.log"
echo 4194305 >"$LAB_DIR/n1/mlx5.pid"
refused "vfu.c:1:2" "$lab" check --new
refused "mlx5soft ended" "$lab" check --new
rm "$LAB_DIR/n1/mlx5.pid"

say "down looks, and the consoles stay"
console_says n1 "[    9.0] WARNING: the last one"
refused "the last one" "$lab" down
grep -q "the last one" "$LAB_DIR"/last/n1.1/console.log ||
	fail "the console is lost"
grep -q "the last one" "$LAB_DIR/last/reports" || fail "the report is lost"
! grep -q "mlx5soft" "$LAB_DIR/last/reports" || fail "that was told before"

say "down of a lab that was content"
fake_node n1
"$lab" down || fail "there was nothing to say"
! grep -q "the last one" -r "$LAB_DIR/last" || fail "that was the one before"

say "a device that does not end by itself"
fake_node n1
bash -c 'trap "" TERM; while :; do sleep 1; done' "$LAB_DIR" &
echo $! >"$LAB_DIR/n1/mlx5.pid"
refused "n1: mlx5soft did not end" "$lab" down
! grep -qs "^State:.[^ZX]" "/proc/$!/status" || fail "it runs on"
