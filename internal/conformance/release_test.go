package conformance_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// release is a version of Apache ZooKeeper that the in-process server can be.
type release struct {
	name    string
	dir     string // below testdata, of the cases that it answers otherwise than the release before
	version curatortest.Version
	least   testenv.Version // from which on a real server is compared with it
}

var (
	release38 = release{name: "3.8.0", version: curatortest.Version38}
	release39 = release{name: "3.9.3", dir: "3.9", version: curatortest.Version39, least: testenv.Version{3, 9, 0}}

	releases = []release{release38, release39} // in order
)

// releaseOf returns the release that a real server is compared with.
func releaseOf(tb testing.TB, server testenv.Instance) release {
	tb.Helper()
	v := testenv.VersionOf(tb, server)
	r := releases[0]
	for _, newer := range releases {
		if v.AtLeast(newer.least) {
			r = newer
		}
	}
	return r
}

// scripts returns the scripts of a directory with the answers of the release.
func (r release) scripts(tb testing.TB, from string) []script {
	tb.Helper()
	scripts, err := readScripts(from)
	if err == nil && r.dir != "" {
		scripts, err = overlayScripts(scripts, r.dir)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return scripts
}

// write writes what was received into a directory: all of it, or for a release with its own below that the cases that
// differ.
func (r release) write(scripts []script, into string) (err error) {
	if r.dir == "" {
		for _, s := range scripts {
			err = errors.Join(err, s.write())
		}
		return err
	}
	base, err := readScripts(into)
	if err != nil {
		return err
	}
	dir := filepath.Join(into, r.dir)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	for _, s := range scripts {
		differ := slices.DeleteFunc(s.cases, func(c scriptCase) bool {
			return reflect.DeepEqual(c, *find(base, s.name(), c.name))
		})
		if len(differ) > 0 {
			err = errors.Join(err, script{filepath.Join(dir, s.name()+".txt"), differ}.write())
		}
	}
	return err
}
