package interop_test

import (
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// TestVersions checks that Java Curator, its ZooKeeper client and the server are those that the run is about.
func TestVersions(t *testing.T) {
	t.Parallel()
	j := startJava(t)
	curator, client := j.version(), j.text("zookeeperVersion", nil)
	server := testenv.VersionOf(t, testenv.Server(t))
	t.Logf("Java Curator %v on the ZooKeeper client %s, Apache ZooKeeper %v", curator, client, server)
	if want := testenv.ExpectedVersion(testenv.Curator); want != "" && curator.String() != want {
		t.Errorf("Java Curator %v, not %s", curator, want)
	}
	want := testenv.ExpectedVersion(testenv.ZooKeeper)
	if want == "" {
		return
	}
	if v, err := testenv.ParseVersion(client); err != nil || v.String() != want {
		t.Errorf("Java Curator uses the ZooKeeper client %s, not %s: %v", client, want, err)
	}
	if server.String() != want {
		t.Errorf("the server is Apache ZooKeeper %v, not %s", server, want)
	}
}

func TestClassPathOfTheEnvironment(t *testing.T) {
	t.Setenv("CURATOR_JAVA_CLASSPATH", "a.jar:b.jar")
	if got, err := interop.ClassPath(); err != nil || got != "a.jar:b.jar" {
		t.Errorf("class path %q, error %v", got, err)
	}
}

// version returns the version of Java Curator that the process runs.
func (j *peer) version() testenv.Version {
	j.t.Helper()
	v, err := testenv.ParseVersion(j.text("version", nil))
	if err != nil {
		j.t.Fatal(err)
	}
	return v
}
