# shellcheck shell=bash disable=SC2154 # shared with bench
# SPDX-License-Identifier: GPL-2.0
#
# Part of bench: what it costs a job that one of its processes moves in its midst, from n1
# to n3.

figure_jobs()
{
	attempt jobs storage 4 job storage 4
	attempt jobs npb_is 1 job npb_is 1
}

# The job twice: as it is, and with a move.
job() # NAME QPS
{
	local without

	"job_$1"
	without=$took
	"job_$1" moves
	echo "jobs $way $1 $2 without ms $without"
	echo "jobs $way $1 $2 added ms $(sum "$took - $without")"
}

# shellcheck disable=SC2016 # expanded there
clock='${EPOCHREALTIME/[.,]/}'

# 6000 blocks of 64 KiB are read from what moves, by four QPs with eight READs in flight.
job_storage() # [moves]
{
	local line="nice ib_read_bw -d $dev -x $gid -F -q 4 -s 65536 -t 8 -u 20 -n 1500"

	line+=" --use_old_post_send"
	# shellcheck disable=SC2086 # words
	ctr_create n1 "${ctr_options[@]}" moved "$moved_ip" -- $line >&2
	poll_until 60 serves n1 moved
	ctr_create n2 "${ctr_options[@]}" partner "$partner_ip" -- bash -c "begin=$clock
		$line $moved_ip && echo took \$((($clock - begin) / 1000))" >&2
	flows n2
	if [ $# = 1 ]; then
		moves moved
		absent n2 'migr-ctr exit partner' || fail "the job was over too soon"
	fi
	poll_until 600 ask n2 'migr-ctr exit partner'
	took=$(ctr_out n2 partner | sed -n 's/^took //p' | grep .) || fail "the job has failed"
	way_cleans >&2
}

# 60 times the integer sort of NPB, class S, by two ranks, of which one moves
job_npb_is() # [moves]
{
	local progress=/var/lib/migr-ctr/mpi0/run/progress

	on n1 "rm -f /run/npb.*; cat >/run/npb.sh
		setsid -f bash /run/npb.sh </dev/null >/dev/null 2>&1" <<-END
		begin=$clock
		mpi-run ${ctr_options[*]} --nodes n1,n2 --per 1 -n 2 \
			npb_is -c S -l 60 -P progress >/run/npb.log 2>&1
		rc=\$?
		echo \$((($clock - begin) / 1000)) >/run/npb.took
		echo \$rc >/run/npb.exit
	END
	if [ $# = 1 ]; then
		poll_until 300 ask n1 "[ -s /run/npb.exit ] ||
			[ \"\$(cat $progress 2>/dev/null || echo 0)\" -ge 20 ]"
		moves mpi0
		absent n1 '[ -s /run/npb.exit ]' || fail "the job was over too soon"
	fi
	poll_until 900 ask n1 '[ -s /run/npb.exit ]'
	ask n1 'grep -qx 0 /run/npb.exit && grep -q "\"verified\":true" /run/npb.log' ||
		fail "the job has failed: $(ask n1 'tail -n 1 /run/npb.log')"
	took=$(ask n1 'cat /run/npb.took')
}
