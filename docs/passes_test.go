package docs_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryPackageWithTestsStandsInItsPass compares the Makefile with the tables of design/tests.md: the first has the
// packages of the second pass, the other those that it leaves out.
func TestEveryPackageWithTestsStandsInItsPass(t *testing.T) {
	text, err := os.ReadFile("design/tests.md")
	if err != nil {
		t.Fatal(err)
	}
	run, left, found := strings.Cut(string(text), "The second pass leaves out these:")
	if !found {
		t.Fatal("no table of what is left out")
	}
	second, ran, leftOut := secondPass(t), firstColumn(run), firstColumn(left)
	pkgs := packagesWithTests(t)
	neither := []string{"examples/clientgo", "cmd/curator/kubernetes", "scripts/peers/testdata"} // of make test
	for _, pkg := range pkgs {
		switch {
		case slices.Contains(neither, pkg):
		case isIn(pkg, second) && !isIn(pkg, ran):
			t.Errorf("%s: the second pass runs it, and nothing says what for", pkg)
		case !isIn(pkg, second) && pkg != "internal/wire" && !isIn(pkg, leftOut):
			t.Errorf("%s: the second pass leaves it out, and nothing says why", pkg)
		}
	}
	for _, name := range slices.Concat(ran, leftOut) {
		if !slices.ContainsFunc(pkgs, func(pkg string) bool { return isIn(pkg, []string{name}) }) {
			t.Errorf("%s: no such package has tests", name)
		}
	}
}

// firstColumn returns the names in the first column of a table.
func firstColumn(text string) (names []string) {
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			names = append(names, strings.Trim(name, "`"))
		}
	}
	return names
}

// isIn reports whether a package is among names, of which "a/*" is a and all below it.
func isIn(pkg string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		dir, all := strings.CutSuffix(name, "/*")
		return pkg == dir || all && strings.HasPrefix(pkg, dir+"/")
	})
}

// secondPass returns the packages of SECOND in the Makefile.
func secondPass(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nSECOND = ")
	list, _, _ := strings.Cut(rest, "\nexport ")
	var names []string
	for name := range strings.FieldsSeq(strings.ReplaceAll(list, "\\\n", " ")) {
		names = append(names, strings.ReplaceAll(path.Clean(name), "/...", "/*"))
	}
	if len(names) < 10 {
		t.Fatalf("%q: no packages", names)
	}
	return names
}

func packagesWithTests(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a temporary directory that is gone again
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && file != "..":
			return fs.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			dirs = append(dirs, filepath.ToSlash(filepath.Dir(file))[len("../"):])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
