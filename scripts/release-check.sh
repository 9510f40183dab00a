#!/usr/bin/env bash
# Checks that HEAD can be released as a version: release-check.sh v0.1.0. It publishes nothing and tags nothing.
#
# It makes the files that a Go module proxy would serve of HEAD, in a directory, and builds the examples outside of the
# repository against them. What the module cache has is not downloaded again, so it works without a network.
set -euo pipefail

module=github.com/gocurator/curator
version=${1:?usage: release-check.sh v0.1.0}
go=${GO:-go}
proxied=$($go env GOPROXY)
cached=$($go env GOMODCACHE)/cache/download
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

say() { printf 'release-check: %s\n' "$*"; }
fail() {
	say "$*" >&2
	exit 1
}

# A module path without /v2 has the versions v0 and v1 only.
[[ $version =~ ^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] || fail "$version is no version of $module"
[[ -z $(git tag --list "$version") ]] || fail "$version exists: a version that somebody may have downloaded is not moved"
[[ -z $(git status --porcelain) ]] || fail "there are changes that are not committed; a release is of HEAD"
! grep --quiet '^replace' go.mod || fail "go.mod replaces a module, which other modules do not see"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "the modules are tidy"
$go mod tidy -diff
for dir in cmd/curator{,/kubernetes} discovery/grpcresolver examples/{clientgo,pipeline} sasl/kerberos; do $go -C "$dir" mod tidy -diff; done

say "the exported surface and the documentation are those that were reviewed"
$go test -count=1 ./internal/apicheck ./internal/arrows ./docs
previous=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
[[ -z $previous ]] || git --no-pager diff --stat "$previous" HEAD -- internal/apicheck/testdata/api.txt

# serve writes what a module proxy serves of the module in a directory of a commit, as a version. A module has the files
# below its root but for those of other modules.
serve() {
	local commit=$1 dir=$2 version=$3 name=$module${2:+/$2} others=() file
	local served=$work/proxy/$name/@v
	for file in $(git ls-tree -r --name-only "$commit" "${dir:-.}"); do
		[[ $file != */go.mod || $file == "$dir/go.mod" ]] || others+=(":(exclude)$(dirname "${file#"${dir:+$dir/}"}")")
	done
	mkdir -p "$served"
	git archive --format=zip --prefix="$name@$version/" --output="$served/$version.zip" "$commit:$dir" -- . "${others[@]}"
	git show "$commit:${dir:+$dir/}go.mod" >"$served/$version.mod"
	printf '{"Version":"%s","Time":"%s"}\n' "$version" "$(TZ=UTC git log -1 --format=%cd --date=format-local:%FT%TZ)" |
		tee "$served/$version.info" >"$served/../@latest"
	# A list has no versions that are made of a commit.
	if [[ $version =~ -[0-9]{14}-[0-9a-f]{12}$ ]]; then : >"$served/list"; else echo "$version" >"$served/list"; fi
}

say "the files that a module proxy serves of $version"
serve HEAD "" "$version"

# The sums of the dependencies are in go.sum. The cache of its own keeps this version out of the real one.
export GOWORK=off GOFLAGS="-mod=mod -modcacherw" GONOSUMDB=$module
export GOPROXY="file://$work/proxy,file://$cached,$proxied" GOMODCACHE=$work/cache

say "the examples, the command, the resolver and Kerberos build in modules outside of the repository"
mkdir "$work/programs"
cp -r examples/{quickstart,tour,workqueue,config} "$work/programs"
cp go.sum "$work/programs"
cp -r cmd/curator examples/pipeline discovery/grpcresolver sasl/kerberos "$work"
# The tests use internal packages.
find "$work"/{programs,curator,pipeline,grpcresolver,kerberos} -name '*_test.go' -delete
cd "$work/programs"
$go mod init example.org/programs 2>/dev/null
$go mod edit -require="$module@$version"
for name in pipeline grpcresolver kerberos; do
	$go -C "$work/$name" mod edit -module="example.org/$name" -dropreplace="$module" -require="$module@$version"
done
# The command keeps its name, by which its packages import each other.
$go -C "$work/curator" mod edit -dropreplace="$module" -require="$module@$version"
for dir in "$work"/{programs,curator,pipeline,grpcresolver,kerberos}; do
	cd "$dir"
	$go mod tidy
	$go vet -tags otlp ./...
	[[ $dir == */grpcresolver || $dir == */kerberos ]] || $go build -o "$work/bin/" ./... # they have no program
	used=$($go list -m "$module")
	[[ $used == "$module $version" ]] || fail "the examples use $used"
done

say "the command and the tour run"
"$work/bin/curator" version
"$work/bin/tour" >"$work/output" || { cat "$work/output" && fail "the tour fails"; }

# As a user installs them, and with nothing but what is served here and what the steps above have loaded. Without a go.sum
# the sums would come from the network.
export GOPROXY="file://$work/proxy,file://$cached,file://$GOMODCACHE/cache/download" GOSUMDB=off

# get adds modules to a new one, and builds a program with the package of the last one.
get() {
	local dir
	dir=$(mktemp -d -p "$work")
	cd "$dir"
	$go mod init example.org/program 2>/dev/null
	printf 'package main\n\nimport _ "%s"\n\nfunc main() {}\n' "${*: -1}" >main.go
	$go get "$@"
	$go build -o program .
	cd "$root"
}

# Before a release the newest commit is what go get takes. Its requirement of the library is none that there is.
say "the newest commit: go get of the library together with Kerberos or the resolver"
cd "$root"
cp -r "$work/proxy" "$work/released"
newest=v0.0.0-$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)-$(git rev-parse --short=12 HEAD)
rm -r "$work/proxy"
for dir in "" sasl/kerberos discovery/grpcresolver; do serve HEAD "$dir" "$newest"; done
get "$module" "$module/sasl/kerberos"
get "$module" "$module/discovery/grpcresolver"

say "$version, after release-modules.sh: go install of the command, and go get of Kerberos or the resolver alone"
rm -r "$work/proxy"
mv "$work/released" "$work/proxy"
mkdir "$work/tree"
git archive HEAD | tar -x -C "$work/tree"
./scripts/release-modules.sh "$version" "$work/tree"
# The files are those of a commit that is on no branch.
commit=$(
	export GIT_INDEX_FILE=$work/index
	git --work-tree="$work/tree" add --all .
	git write-tree
)
for dir in cmd/curator sasl/kerberos discovery/grpcresolver; do serve "$commit" "$dir" "$version"; done
cd "$work" # no module is around it
GOBIN=$work/installed $go install "$module/cmd/curator@latest"
"$work/installed/curator" version
get "$module/sasl/kerberos"
get "$module/discovery/grpcresolver"

cd "$root"
grep --quiet "^## \[${version#v}\]" CHANGELOG.md || say "CHANGELOG.md has no section ${version#v} yet"
say "$version can be released"
