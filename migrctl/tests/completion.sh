#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2016 # names that look so
#
# completion.sh MIGRCTL - what bash completes behind migrctl: all that its usage and its man page
# have, and nothing else; names that the agent tells, but for those that a shell would run.

set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -r "$tmp"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# shellcheck source=../completion/migrctl.bash
. "$here/completion/migrctl.bash"
timeout() { "${@:2}"; } # however slow this machine is

# As readline has it, which cuts words at =. An interactive shell has none of the options above.
completes() # WORD..., of which the last one is at the cursor
(
	set +eu +o pipefail
	COMP_WORDS=(migrctl "$@")
	COMP_CWORD=$#
	_migrctl
	printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | xargs
)

gives() # WORDS WORD...
{
	local got

	got=$(completes "${@:2}")
	[ "$got" = "$1" ] || fail "behind migrctl ${*:2}: '$got', not '$1'"
}

# ---- the same as elsewhere -------------------------------------------------------

same() # WHAT COMPLETED ELSEWHERE
{
	[ "$2" = "$3" ] || fail "$1: '$2' are completed, and '$3' are there"
}
options() { grep -oE '(^|[^a-z-])--?[a-z][a-z-]*' | grep -oE -- '-.*' | LC_ALL=C sort -u | xargs; }

usage=$("$1" --help)
man=$(<"$here/man/migrctl.8")

same "options of the usage" "$(completes -)" "$(options <<<"$usage")"
same "options of the man page" "$(completes -)" \
	"$(grep '^\.It Fl' <<<"$man" | sed -E 's/^\.It//; s/ Fl / -/g' | options)"
same "commands of the man page" "$(completes '')" \
	"$(sed -nE 's/^\.It Cm ([a-z]+).*/\1/p' <<<"$man" | sort -u | xargs)"

# each command, behind which its own options stand, and those of all in the last line
commands=()
while read -r command own; do
	commands+=("$command")
	same "options of $command" "$(completes "$command" -)" \
		"$(echo "$own ${usage##*options:}" | options)"
done < <(tr '\n' ' ' <<<"${usage%options:*}" |
	sed -E 's/[a-z]+: //; s/ *migrctl \[OPTION\]\.\.\. /\n/g; s/ \| /\n/g' | grep .)
same "commands of the usage" "$(completes '')" "$(printf '%s\n' "${commands[@]}" | sort | xargs)"

# ---- command lines -----------------------------------------------------------------

# That is the agent: c1 and c2 are there, c3 is under way.
mkdir "$tmp/bin"
cat >"$tmp/bin/migrctl" <<'END'
#!/bin/sh
echo "$*" >"$TMP/asked"
case $* in
*list) cat "$TMP/list" ;;
*status) echo '{"ok":true,"moves":[{"name":"c3","peer":"n3"}]}' ;;
esac
END
chmod +x "$tmp/bin/migrctl"
cat >"$tmp/list" <<'END'
{"containers":[{"name":"c1","pid":7},{"name":"c2","pid":null},{"name":"My.c_3","pid":9},{"name":"$(touch x)"},{"name":"`touch x`"},{"name":"a b"},{"name":"c;x"},{"name":"c\u001b"},{"name":"c\n"},{"name":"-x"},{"name":".C"},{"name":7},{"name":"abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh"},{"name":""}],"ok":true}
END
cat >"$tmp/hosts" <<'END'
127.0.0.1	localhost
::1		ip6-localhost ip6-loopback
# 192.0.2.9	n9
192.0.2.1	n1	# the first one
192.0.2.2	n2 node2.example
192.0.2.3	$(touch x) n;3 -n n3
END
export TMP=$tmp PATH=$tmp/bin:$PATH HOSTFILE=$tmp/hosts
hosts='n1 n2 n3 node2.example'
cd "$tmp"
touch n2.key

gives migrate mi
gives '' x
gives recover --json re
gives 'My.c_3 c1 c2' migrate ''
gives 'My.c_3 c1 c2' check --to n2 ''
gives 'c1 c2' check --to = n2 c
gives '' check c1 ''
gives '--pre-copy' migrate c1 --p
gives c3 abort ''
gives c3 recover --fenced n3 c
gives '' list ''
gives "$hosts" drain ''
gives '' drain n1 ''
gives "$hosts" migrate c1 --to ''
gives "$hosts" migrate c1 --to =
gives n3 migrate c1 --to = n3
gives n2 --on n1 check c1 --from node2.example --to n2
gives 'n2,n1 n2,n2 n2,n3 n2,node2.example' drain n1 --to n2,
gives 'n2,n1,n3' drain --to = n2,n1,n3
gives '' migrate c1 --to n2,n
gives '--to=n1' migrate c1 --to=n1
gives '--to=n2,n1' drain --to=n2,n1
gives auto migrate c1 --pre-copy =
gives n2.key -k n
gives n2.key migrate c1 --timing = n
gives --timing=n2.key migrate c1 --timing=n
gives '' -p ''

say() { [ "$(<asked)" = "$1" ] || fail "the agent was asked: $(<asked), not: $1"; }
completes -k 'a key' --from = n1 -s x --timing migrate --to n3 '' >/dev/null
say '-k a key --from=n1 -s x --json list'
completes abort --on n1 '' >/dev/null
say '--on n1 --json status'

[ ! -e x ] || fail "a name was run"
