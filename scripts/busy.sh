#!/usr/bin/env bash
# Runs a command beside busy processes that leave the machine little time for it: busy.sh 20 go test ./...
# The processes end with the command, however it ends, and also if this script is killed.
set -euo pipefail

spin() {
	trap - EXIT INT TERM
	while kill -0 $$ 2>/dev/null; do # $$ is the script, also in here
		for ((i = 0; i < 20000; i++)); do :; done
	done
}

spinners=()
stop() { ((${#spinners[@]} == 0)) || kill "${spinners[@]}" 2>/dev/null || true; }
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

count=$1
shift
for ((n = 0; n < count; n++)); do
	spin &
	spinners+=($!)
done
"$@"
