package curatortest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindInstallation(t *testing.T) {
	dir := t.TempDir()
	java := func(name string) string {
		name = filepath.Join(dir, name, "bin", "java")
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o700); err != nil { //nolint:gosec // java is executable
			t.Fatal(err)
		}
		return name
	}
	onPath, atHome, brewed := java("path"), java("home"), java("brew")
	lib := filepath.Join(dir, "lib")
	if err := os.Mkdir(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	jars := []string{filepath.Join(lib, "a.jar"), filepath.Join(lib, "b.jar")}
	for _, jar := range jars {
		if err := os.WriteFile(jar, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := strings.Join(jars, string(filepath.ListSeparator))
	nowhere, there := filepath.Join(dir, "none", "*.jar"), filepath.Join(lib, "*.jar")

	for _, tt := range []struct {
		name                  string
		places                places
		path, home, classPath string
		want                  installation // zero: ErrNoZooKeeper
	}{
		{name: "nothing"},
		{name: "Java only", path: filepath.Dir(onPath), places: places{jars: []string{nowhere}}},
		{name: "jars only", places: places{jars: []string{there}}},
		{name: "class path only", classPath: "x.jar"},
		{
			name: "on the path", path: filepath.Dir(onPath), places: places{jars: []string{nowhere, there}},
			want: installation{onPath, all},
		},
		{
			name: "Homebrew", path: filepath.Dir(onPath), places: places{java: brewed, jars: []string{there}},
			want: installation{brewed, all},
		},
		{
			name: "JAVA_HOME", path: filepath.Dir(onPath), home: filepath.Join(dir, "home"),
			places: places{java: brewed, jars: []string{there}},
			want:   installation{atHome, all},
		},
		{
			name: "JAVA_HOME without Java", path: filepath.Dir(onPath), home: dir, places: places{jars: []string{there}},
			want: installation{onPath, all},
		},
		{
			name: "class path of the environment", path: filepath.Dir(onPath), classPath: "x.jar",
			places: places{jars: []string{there}},
			want:   installation{onPath, "x.jar"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			t.Setenv("JAVA_HOME", tt.home)
			t.Setenv(classPathVariable, tt.classPath)
			got, err := tt.places.find()
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if none := tt.want == (installation{}); errors.Is(err, ErrNoZooKeeper) != none || (err != nil) != none {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestNoZooKeeper(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("JAVA_HOME", "")
	before := wellKnown
	t.Cleanup(func() { wellKnown = before })
	wellKnown = places{}

	if _, err := NewRealServer(); !errors.Is(err, ErrNoZooKeeper) {
		t.Errorf("server: %v", err)
	}
	if _, err := NewRealCluster(3); !errors.Is(err, ErrNoZooKeeper) {
		t.Errorf("cluster: %v", err)
	}
}
