#!/usr/bin/env bash
# Installs what the tests need and this machine does not have: a C compiler (for the race detector), Java, Apache
# ZooKeeper, for the tests beside Java Curator its jars, kazoo, which is a client of Python, tmux, which is a terminal for
# the screens of the command, and a KDC of Kerberos, which only the tests start. Says nothing and does nothing when all is
# there.
#
# Debian and Ubuntu: with apt-get, as root or through sudo. macOS: with Homebrew. Elsewhere, run a server of your own
# and name it in ZOOKEEPER_CONNECT (host:port).
set -euo pipefail

say() { printf 'install.sh: %s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# quietly runs a command and shows what it printed only if it fails.
quietly() {
	local output
	if ! output=$("$@" 2>&1); then
		printf '%s\n' "$output" >&2
		say "failed: $*"
		return 1
	fi
}

# leave_it ends the script where it cannot install: that is fine with a server of one's own.
leave_it() {
	if [[ -n ${ZOOKEEPER_CONNECT:-} ]]; then
		say "$1; using the server of ZOOKEEPER_CONNECT ($ZOOKEEPER_CONNECT); tests that need one of their own will fail"
		exit 0
	fi
	say "$1"
	say "install Java, Apache ZooKeeper (its jars in CURATOR_ZOOKEEPER_CLASSPATH) and a C compiler by hand," \
		"or run a server elsewhere and set ZOOKEEPER_CONNECT=host:port"
	exit 1
}

# jar_packages lists the jars that the tests put on a class path, and the packages that have them.
jar_packages='
zookeeper           libzookeeper-java
zookeeper-jute      libzookeeper-java
curator-client      libcurator-client-java
curator-framework   libcurator-framework-java
curator-recipes     libcurator-recipes-java
curator-x-discovery libcurator-discovery-java
curator-test        libcurator-test-java
guava               libguava-java
slf4j-api           libslf4j-java
slf4j-simple        libslf4j-java
jackson-core        libjackson2-core-java
jackson-databind    libjackson2-databind-java
jackson-annotations libjackson2-annotations-java
'

# missing_packages prints what apt-get has to install.
missing_packages() {
	local jar package
	{ { have gcc || have cc; } && [[ -e /usr/include/stdlib.h ]]; } || echo build-essential
	{ have java && have javac; } || echo default-jdk-headless
	[[ -x /usr/sbin/krb5kdc ]] || echo krb5-kdc
	[[ -x /usr/sbin/kadmin.local ]] || echo krb5-admin-server
	have kinit || echo krb5-user
	have tmux || echo tmux
	/usr/bin/python3 -c 'import kazoo' 2>/dev/null || echo python3-kazoo
	while read -r jar package; do
		[[ -z $jar || -e /usr/share/java/$jar.jar ]] || echo "$package"
	done <<<"$jar_packages"
}

policy=/usr/sbin/policy-rc.d
denied=
as_root=()

# deny_services keeps apt-get from starting the services that it installs.
deny_services() {
	[[ ! -e $policy ]] || return 0 # a container has one
	denied=yes
	trap allow_services EXIT
	printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
	"${as_root[@]}" chmod 755 "$policy"
}

allow_services() {
	[[ -z $denied ]] || "${as_root[@]}" rm -f "$policy"
	denied=
}

install_debian() {
	local packages
	mapfile -t packages < <(missing_packages | sort -u)
	((${#packages[@]})) || return 0
	if ((EUID != 0)); then
		have sudo || leave_it "cannot install ${packages[*]}: neither root nor sudo"
		as_root=(sudo)
	fi
	say "installing ${packages[*]}"
	local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
	quietly "${apt[@]}" update || say "going on with the package lists that are there"
	deny_services
	quietly "${apt[@]}" install --yes --no-install-recommends "${packages[@]}" ||
		leave_it "cannot install ${packages[*]}"
	allow_services
	if [[ " ${packages[*]} " == *' krb5-'* ]] && have systemctl; then
		quietly "${as_root[@]}" systemctl disable krb5-kdc krb5-admin-server || true # not at the next start either
	fi
	mapfile -t packages < <(missing_packages | sort -u)
	((${#packages[@]} == 0)) || leave_it "still missing after the installation: ${packages[*]}"
}

# Written for the bash 3.2 of macOS.
install_macos() {
	local prefix
	have cc || leave_it "no C compiler: run xcode-select --install"
	for prefix in /opt/homebrew /usr/local; do
		[[ -d $prefix/opt/zookeeper/libexec && -x $prefix/opt/krb5/sbin/krb5kdc ]] && have tmux && return 0
	done
	have brew || leave_it "no Homebrew (https://brew.sh) to install zookeeper, krb5 and tmux with"
	say "installing zookeeper, krb5 and tmux with Homebrew"
	quietly env HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet zookeeper krb5 tmux ||
		leave_it "cannot install zookeeper, krb5 and tmux"
	say "the tests in interop/ need the jars of Java Curator, which only Debian and Ubuntu package: they will fail here," \
		"and so will those in cmd/curator that need kazoo"
}

case $(uname -s) in
Darwin) install_macos ;;
Linux)
	if have apt-get; then
		install_debian
	elif ! { have java && [[ -n ${CURATOR_ZOOKEEPER_CLASSPATH:-} ]]; }; then
		leave_it "no apt-get here"
	fi
	;;
*) leave_it "no way known to install on $(uname -s)" ;;
esac
