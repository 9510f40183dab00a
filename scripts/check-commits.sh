#!/usr/bin/env bash
# Checks the subjects of commits: check-commits.sh [range], main..HEAD unless another range is given. A subject reads
# "package: imperative", begins in lower case, and has at most 72 columns and no full stop. Merges are left out.
set -euo pipefail
export LC_ALL=C.UTF-8

commits=$(git log --no-merges --format='%h %s' "${1:-main..HEAD}")

bad=0
refuse() {
	echo "$1: $2"
	bad=1
}

packages='[a-z0-9][a-z0-9/._-]*(, [a-z0-9][a-z0-9/._-]*)*'
while read -r hash subject; do
	[[ -n $hash ]] || continue # an empty range
	if [[ ! $subject =~ ^$packages:\ [a-z] ]]; then
		refuse "$hash $subject" 'a subject reads "package: imperative" and begins in lower case'
	fi
	if ((${#subject} > 72)); then
		refuse "$hash $subject" "${#subject} columns; a subject has at most 72"
	fi
	if [[ $subject == *. ]]; then
		refuse "$hash $subject" "a subject has no full stop"
	fi
done <<<"$commits"
exit $bad
