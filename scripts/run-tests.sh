#!/usr/bin/env bash
# Runs all tests: installs what they need, vets, and runs them on the in-process server and on Apache ZooKeeper. A
# failure of one pass does not hide the other. make test calls it.
#
#     run-tests.sh install vet memory real
#
# runs these steps. GO, TAGS, TEST (the command with its flags), PACKAGES and SECOND (the packages of the second pass) come
# from the Makefile.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${GO:=go}" "${TAGS=}" "${TEST:?the Makefile sets it}" "${PACKAGES:?the Makefile sets it}" "${SECOND:?the Makefile sets it}"

# period is the pause between two lines while a step has no output of its own.
period=20

say() { printf 'run-tests.sh: %s\n' "$*"; }

# since prints the time since a number of seconds of $SECONDS.
since() { printf '%d:%02d' $(((SECONDS - $1) / 60)) $(((SECONDS - $1) % 60)); }

ticker=
stop_ticker() { [[ -z $ticker ]] || { kill "$ticker" && wait "$ticker"; } 2>/dev/null; ticker=; }
trap stop_ticker EXIT

# tick says every few seconds that a step is still under way.
tick() {
	local began=$SECONDS
	while sleep "$period" >/dev/null 2>&1; do # whoever reads our output does not wait for the last sleep
		say "$1: $(since "$began")"
	done
}

results=()
failed=0

# step runs a command under a name and notes how it ended. The second argument says what to expect of its output.
step() {
	local name=$1 expect=$2 began=$SECONDS status=0
	shift 2
	say "$name: $expect"
	tick "$name" &
	ticker=$!
	"$@" || status=$?
	stop_ticker
	if ((status)); then
		failed=1
		results+=("FAILED  $(since "$began")  $name")
	else
		results+=("passed  $(since "$began")  $name")
	fi
	return "$status"
}

vet() { $GO vet -race $TAGS $PACKAGES; }
memory() { $TEST -p=5 $PACKAGES; }

# real runs the second pass. Of internal/wire it needs only the tests that are about Apache ZooKeeper.
real() {
	local status=0
	CURATOR_TEST_SERVER=real $TEST -p=4 $SECOND || status=1
	CURATOR_TEST_SERVER=real $TEST -run=TestRealServer ./internal/wire || status=1
	return "$status"
}

say "all steps take about twenty minutes on two cores, and a few more the first time, with nothing compiled"
for name in "$@"; do
	case $name in
	install) step "installing what is missing" "a minute or more the first time" ./scripts/install.sh || break ;;
	vet) step "vetting, which compiles everything" "prints nothing for a minute or two the first time" vet || break ;;
	memory) step "first pass, on the in-process server" "a line for each package at its end" memory ;;
	real) step "second pass, on Apache ZooKeeper" "a line for each package at its end" real ;;
	*)
		say "unknown step $name"
		exit 2
		;;
	esac
done
printf '%s\n' "${results[@]}" | while read -r line; do say "$line"; done
exit "$failed"
