package curatortest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoZooKeeper is wrapped by the error of a server that cannot be started because ZooKeeper or Java is missing.
var ErrNoZooKeeper = errors.New("curatortest: no Apache ZooKeeper on this machine: run scripts/install.sh, " +
	"or install libzookeeper-java and a Java runtime (Debian, Ubuntu) or zookeeper (Homebrew)")

// classPathVariable names the environment variable with the class path of ZooKeeper.
const classPathVariable = "CURATOR_ZOOKEEPER_CLASSPATH"

// installation is a ZooKeeper that can be started.
type installation struct {
	java      string
	classPath string
}

// places are where ZooKeeper and Java may be.
type places struct {
	java string   // preferred to the one on the path
	jars []string // patterns; the first that matches is the class path
}

// wellKnown are the places of the package managers.
var wellKnown = places{
	java: "/opt/homebrew/opt/openjdk/bin/java", // the formula needs it but does not put it on the path
	jars: []string{
		debianJars + "/zookeeper.jar", // names all it needs in its manifest, but nothing to log with
		"/opt/homebrew/opt/zookeeper/libexec/lib/*.jar",
		"/usr/local/opt/zookeeper/libexec/lib/*.jar",
		"/home/linuxbrew/.linuxbrew/opt/zookeeper/libexec/lib/*.jar",
	},
}

const debianJars = "/usr/share/java"

func (p places) find() (installation, error) {
	java, err := p.findJava()
	if err != nil {
		return installation{}, fmt.Errorf("%w: %w", ErrNoZooKeeper, err)
	}
	if cp := os.Getenv(classPathVariable); cp != "" {
		return installation{java, cp}, nil
	}
	for _, pattern := range p.jars {
		jars, err := filepath.Glob(pattern)
		if err != nil {
			return installation{}, err
		}
		if len(jars) == 0 {
			continue
		}
		if filepath.Dir(jars[0]) == debianJars {
			for _, name := range []string{"slf4j-simple", "netty-codec", "netty-resolver"} { // for a secure port
				jars = append(jars, debianJars+"/"+name+".jar") // it may be missing
			}
		}
		return installation{java, strings.Join(jars, string(filepath.ListSeparator))}, nil
	}
	return installation{}, ErrNoZooKeeper
}

func (p places) findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if java := filepath.Join(home, "bin", "java"); isExecutable(java) {
			return java, nil
		}
	}
	if isExecutable(p.java) {
		return p.java, nil
	}
	return exec.LookPath("java")
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
