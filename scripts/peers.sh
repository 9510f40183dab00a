#!/usr/bin/env bash
# Runs the tests of go-zookeeper on the servers of curatortest. They are copied from the module cache, in the version
# of go.mod, into a temporary directory; the file that starts servers of Java is replaced by ours. Arguments go to
# go test.
#
# TestIntegration_Reconfig and TestIntegration_IncrementalReconfig skip themselves without ZK_VERSION: the servers of
# curatortest are not reconfigured, and on Apache ZooKeeper 3.8 the two fail as well.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
library=github.com/go-zookeeper/zk

cd "$root"
"$go" mod download "$library"
source=$("$go" list -m -f '{{.Dir}}' "$library")
version=$("$go" list -m -f '{{.GoVersion}}' github.com/gocurator/curator)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A module of another name: the tests import curatortest, which imports the library itself.
mkdir "$work/zk"
cp "$source"/*.go "$work/zk"
chmod -R u+w "$work/zk"
cp scripts/peers/testdata/server_help_test.go "$work/zk"
printf 'module peers.invalid/zk\n\ngo %s\n' "$version" >"$work/zk/go.mod"
printf 'go %s\n\nuse (\n\t./zk\n\t%s\n)\n' "$version" "$root" >"$work/go.work"

cd "$work/zk"
unset ZK_VERSION
GOWORK=$work/go.work "$go" test -vet=off -count=1 -timeout=5m "$@" .
