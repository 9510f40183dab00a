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

// classPathVariable names the environment variable that overrides where ZooKeeper is looked for.
const classPathVariable = "CURATOR_ZOOKEEPER_CLASSPATH"

// installation is a ZooKeeper that can be started.
type installation struct {
	java      string
	classPath string
}

func findInstallation() (installation, error) {
	java, err := findJava()
	if err != nil {
		return installation{}, fmt.Errorf("%w: %w", ErrNoZooKeeper, err)
	}
	if cp := os.Getenv(classPathVariable); cp != "" {
		return installation{java, cp}, nil
	}
	for _, pattern := range []string{
		"/usr/share/java/zookeeper.jar", // names all it needs in its manifest, but nothing to log with
		"/opt/homebrew/opt/zookeeper/libexec/lib/*.jar",
		"/usr/local/opt/zookeeper/libexec/lib/*.jar",
		"/home/linuxbrew/.linuxbrew/opt/zookeeper/libexec/lib/*.jar",
	} {
		if jars, _ := filepath.Glob(pattern); len(jars) > 0 {
			if logger := "/usr/share/java/slf4j-simple.jar"; filepath.Dir(jars[0]) == filepath.Dir(logger) {
				jars = append(jars, logger) // no harm if it is not there
			}
			return installation{java, strings.Join(jars, string(filepath.ListSeparator))}, nil
		}
	}
	return installation{}, ErrNoZooKeeper
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if java := filepath.Join(home, "bin", "java"); isExecutable(java) {
			return java, nil
		}
	}
	if java := "/opt/homebrew/opt/openjdk/bin/java"; isExecutable(java) { // what the formula depends on, not on the path
		return java, nil
	}
	return exec.LookPath("java")
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
