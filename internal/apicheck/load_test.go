package apicheck

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// programs are the directories of the module whose packages are not imported.
var programs = []string{"bench", "docs", "examples", "interop", "scripts"}

// surfaceOfModule returns the surface of all public packages.
func surfaceOfModule(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, pkg := range loadModule(t) {
		lines = append(lines, surfaceOf(pkg)...)
	}
	return lines
}

// loadModule returns all public packages.
func loadModule(t *testing.T) []*types.Package {
	t.Helper()
	noteSources(t)
	public := publicPackages(t)
	exports := exportData(t, public)
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(file)
	})
	var pkgs []*types.Package
	for _, path := range public {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs
}

// noteSources looks at all sources, so that the go command does not return a cached result after a change of one.
func noteSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(name) == ".go" || d.Name() == "go.mod" {
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// publicPackages returns the import paths of the packages that a user can import, sorted.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var public []string
	for line := range strings.Lines(goList(t, "-f={{.Name}} {{.ImportPath}}", "./...")) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
		if name != "main" && !slices.Contains(dirs, "internal") && !slices.Contains(programs, dirs[0]) {
			public = append(public, path)
		}
	}
	if len(public) == 0 {
		t.Fatal("go list finds no public package")
	}
	slices.Sort(public)
	return public
}

// exportData returns the file of the export data of packages and all their dependencies, by import path.
func exportData(t *testing.T, packages []string) map[string]string {
	t.Helper()
	args := append([]string{"-export", "-deps", "-f={{.ImportPath}}\t{{.Export}}"}, packages...)
	files := map[string]string{}
	for line := range strings.Lines(goList(t, args...)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return files
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	return string(out)
}
