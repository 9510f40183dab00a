package interop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoCurator is returned when Java, or the jars of Java Curator, are not installed.
var ErrNoCurator = errors.New("interop: Java Curator is not installed; scripts/install.sh installs it")

// classPathVariable names the environment variable that overrides where Java Curator is looked for.
const classPathVariable = "CURATOR_JAVA_CLASSPATH"

// jarDir is where the packages of Debian and Ubuntu put their jars.
const jarDir = "/usr/share/java"

// jars are Java Curator, its ZooKeeper client, and the dependencies of both.
var jars = []string{
	"curator-client", "curator-framework", "curator-recipes", "curator-x-discovery",
	"zookeeper", "zookeeper-jute", "guava", "slf4j-api", "slf4j-simple",
	"jackson-core", "jackson-databind", "jackson-annotations",
}

// Program is a Java program on Java Curator that obeys commands as Peer.java does.
type Program struct {
	Class   string   // the public class with main
	Source  []byte   // the text of its file, if that is all
	Sources fs.FS    // otherwise the files: all that end in .java
	Flags   []string // for the virtual machine
}

// source is a file of a program.
type source struct {
	name string
	text []byte
}

// sources returns the files of the program in the order of their names.
func (p *Program) sources() (files []source, err error) {
	if p.Sources == nil {
		return []source{{p.Class + ".java", p.Source}}, nil
	}
	names, err := fs.Glob(p.Sources, "*.java")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(p.Sources, name)
		if err != nil {
			return nil, err
		}
		files = append(files, source{name, text})
	}
	return files, nil
}

// ClassPath returns the class path of Java Curator: that of CURATOR_JAVA_CLASSPATH, or the jars of the system. The
// error is [ErrNoCurator] if there are none.
func ClassPath() (string, error) {
	if classPath := os.Getenv(classPathVariable); classPath != "" {
		return classPath, nil
	}
	paths := make([]string, len(jars))
	for i, jar := range jars {
		paths[i] = filepath.Join(jarDir, jar+".jar")
		if _, err := os.Stat(paths[i]); err != nil {
			return "", fmt.Errorf("%w (%w)", ErrNoCurator, err)
		}
	}
	return strings.Join(paths, string(filepath.ListSeparator)), nil
}

// Compile compiles the program, unless an earlier run did, and gives the directory of its classes. It is
// under the directory for temporary files and named after the text and the class path.
func Compile(ctx context.Context, prog Program) (dir string, err error) {
	classPath, err := ClassPath()
	if err != nil {
		return "", err
	}
	javac, err := exec.LookPath("javac")
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNoCurator, err)
	}
	files, err := prog.sources()
	if err != nil {
		return "", fmt.Errorf("interop: %s: %w", prog.Class, err)
	}
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, classPath)
	for _, file := range files {
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", file.name, len(file.text), file.text)
	}
	dir = filepath.Join(os.TempDir(), fmt.Sprintf("curator-java-%x", sum.Sum(nil)[:12]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}

	// Several test processes may be at it: each compiles for itself, and the first to finish is kept.
	work, err := os.MkdirTemp("", "curator-java-")
	if err != nil {
		return "", fmt.Errorf("interop: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // nothing is there once it has its final name
	args := []string{"-encoding", "UTF-8", "-cp", classPath, "-d", work}
	for _, file := range files {
		name := filepath.Join(work, file.name)
		if err := os.WriteFile(name, file.text, 0o600); err != nil {
			return "", fmt.Errorf("interop: %w", err)
		}
		args = append(args, name)
	}
	if text, err := exec.CommandContext(ctx, javac, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("interop: javac %s: %w\n%s", prog.Class, err, text)
	}
	if err := os.Rename(work, dir); err != nil {
		if _, missing := os.Stat(dir); missing != nil {
			return "", fmt.Errorf("interop: %w", err)
		}
	}
	return dir, nil
}
