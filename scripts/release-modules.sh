#!/usr/bin/env bash
# Lets the other modules of a directory require a version of the library: release-modules.sh v0.1.0 [DIRECTORY]. That is
# how they are tagged. release-check.sh does it in a copy.
set -euo pipefail

module=github.com/gocurator/curator
version=${1:?usage: release-modules.sh v0.1.0}
root=${2:-$(cd "$(dirname "$0")/.." && pwd)}
go=${GO:-go}
export GOWORK=off

for dir in discovery/grpcresolver sasl/kerberos cmd/curator; do
	cd "$root/$dir"
	$go mod edit -require="$module@$version"
	# go install refuses a version whose go.mod replaces a module; go get does not look at it.
	[[ $dir != cmd/curator ]] || $go mod edit -dropreplace="$module"
	$go mod tidy
done
