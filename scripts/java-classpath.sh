#!/usr/bin/env bash
# Prints the class path of Java Curator from the jars that Debian and Ubuntu package: for Java programs that run beside
# ours. Fails if a jar is missing; scripts/install.sh installs it.
set -euo pipefail

jar_dir=/usr/share/java

# Java Curator, its ZooKeeper client, and what both need.
jars=(
	curator-client curator-framework curator-recipes curator-x-discovery curator-test
	zookeeper zookeeper-jute guava slf4j-api slf4j-simple
	jackson-core jackson-databind jackson-annotations
)

class_path=
for jar in "${jars[@]}"; do
	path=$jar_dir/$jar.jar
	if [[ ! -e $path ]]; then
		printf 'java-classpath.sh: no %s: run scripts/install.sh\n' "$path" >&2
		exit 1
	fi
	class_path+=${class_path:+:}$path
done
printf '%s\n' "$class_path"
