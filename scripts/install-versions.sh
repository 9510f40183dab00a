#!/usr/bin/env bash
# Unpacks the Apache ZooKeeper and Java Curator of Debian 13 (trixie) into .cache/versions, and prints the variables with
# which the tests use them in place of those of this system:
#
#     vars=$(scripts/install-versions.sh) && eval "$vars"
#
# Nothing is installed and apt's lists stay as they are. What the jars need besides each other (Java, Netty, Jackson, a
# logger) is the system's, from scripts/install.sh. The packages come from the mirror that this Debian is configured
# with; elsewhere, name one in CURATOR_DEBIAN_MIRROR and install debian-archive-keyring.
set -euo pipefail

suite=trixie
zookeeper=3.9.3
curator=5.7.1

# jars are those of the packages, in the order of the class path: a manifest names the system's, so that what other jars
# need comes before them.
jars=(zookeeper-jute zookeeper curator-client curator-framework curator-recipes curator-x-discovery)
packages=(libzookeeper-java libcurator-{client,framework,recipes,discovery}-java)
# system_jars are those that come with the system.
system_jars=(guava slf4j-api slf4j-simple jackson-core jackson-databind jackson-annotations)
system_dir=/usr/share/java

dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/versions/zookeeper-$zookeeper-curator-$curator
jar_dir=$dir/usr/share/java

say() { printf 'install-versions.sh: %s\n' "$*" >&2; }

fail() {
	say "$1"
	exit 1
}

# mirror prints the address that this Debian takes its packages from.
mirror() {
	local ID='' VERSION_CODENAME='' filter uri
	if [[ -n ${CURATOR_DEBIAN_MIRROR:-} ]]; then
		echo "$CURATOR_DEBIAN_MIRROR"
		return
	fi
	# shellcheck source=/dev/null
	[[ ! -e /etc/os-release ]] || . /etc/os-release
	[[ $ID == debian ]] || fail "this is no Debian: name one of its mirrors in CURATOR_DEBIAN_MIRROR"
	for filter in 'Origin: Debian' 'Created-By: Packages'; do # the origin is unknown before the first apt-get update
		uri=$(apt-get indextargets --format '$(REPO_URI)' "$filter" 'Created-By: Packages' 'Component: main' \
			"Release: $VERSION_CODENAME" | awk 'NR == 1')
		[[ -z $uri ]] || break
	done
	[[ -n $uri ]] || fail "no mirror of $VERSION_CODENAME in /etc/apt: name one in CURATOR_DEBIAN_MIRROR"
	echo "$uri"
}

# keyring prints the file of Debian's keys.
keyring() {
	local file
	for file in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
		[[ ! -e $file ]] || { echo "$file" && return; }
	done
	fail "no keys of Debian: install debian-archive-keyring"
}

# unpack puts the packages into a directory.
unpack() {
	local uri keys apt package
	uri=$(mirror)
	keys=$(keyring)
	mkdir -p "$1"/apt/{state/lists/partial,cache/archives/partial,download}
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$suite" "$keys" \
		>"$1/apt/debian.sources"
	apt=(apt-get -qq -o Dir::Etc::SourceList="$1/apt/debian.sources" -o Dir::Etc::SourceParts=-
		-o Dir::State="$1/apt/state" -o Dir::State::Lists="$1/apt/state/lists" -o Dir::Cache="$1/apt/cache"
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
	"${apt[@]}" update >&2
	(cd "$1/apt/download" && "${apt[@]}" download "${packages[@]}" >&2)
	for package in "$1"/apt/download/*.deb; do
		dpkg-deb -x "$package" "$1"
	done
	rm -r "$1/apt"
}

# complete says whether the jars of these versions are in a directory.
complete() {
	local jar version=$zookeeper
	for jar in "${jars[@]}"; do
		[[ $jar != curator-* ]] || version=$curator
		[[ -e $1/usr/share/java/$jar-$version.jar ]] || return 1
	done
}

if ! complete "$dir"; then
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "apt-get and dpkg-deb are needed"
	say "fetching ZooKeeper $zookeeper and Curator $curator of Debian $suite"
	mkdir -p "${dir%/*}"
	work=$(mktemp -d "$dir.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	unpack "$work"
	complete "$work" || fail "the packages of $suite are not ZooKeeper $zookeeper and Curator $curator"
	rm -rf "$dir"
	mv -T "$work" "$dir"
fi

# join prints a class path.
join() {
	local IFS=:
	echo "$*"
}

own=("${jars[@]/#/$jar_dir/}")
system=("${system_jars[@]/#/$system_dir/}")
# extra are the jars that no manifest names: a logger, and what a secure port needs.
extra=("$system_dir"/{slf4j-simple,netty-codec,netty-resolver}.jar)
printf 'export %s=%q\n' \
	CURATOR_ZOOKEEPER_CLASSPATH "$(join "$jar_dir"/zookeeper{-jute,}.jar "${extra[@]}")" \
	CURATOR_JAVA_CLASSPATH "$(join "${own[@]/%/.jar}" "${system[@]/%/.jar}")" \
	CURATOR_EXPECT_VERSIONS "zookeeper=$zookeeper curator=$curator"
