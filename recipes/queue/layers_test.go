package queue

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layers is the layout of the package: a file uses only what is declared in files of its own layer and of those above
// it in the table.
var layers = []struct {
	name  string
	files string
}{
	{"names and bytes", "doc node_name item_bytes trailer kind errors info client serializer"},
	{"place", "place pace answer background causes"},
	{"producer", "pending_put batch producer flush room"},
	{"claims", "queue_watch message lock_claim delete_claim element fence pauses settler"},
	{"fetcher", "backlog yielding view quarantine prefetch listing claiming waiting sharing fetcher element_fetcher"},
	{"consumption", "options queue put consumer items corrupt depth"},
	{"edges", "builder distributed_queue priority_queue delay_queue id_queue sharder shard simple_queue"},
}

func layerOf() map[string]int {
	of := make(map[string]int)
	for i, l := range layers {
		for name := range strings.FieldsSeq(l.files) {
			of[name+".go"] = i
		}
	}
	return of
}

// fakeImporter gives packages without contents: only what is declared here matters.
type fakeImporter map[string]*types.Package

func (m fakeImporter) Import(path string) (*types.Package, error) {
	if m[path] == nil {
		m[path] = types.NewPackage(path, filepath.Base(path))
		m[path].MarkComplete()
	}
	return m[path], nil
}

// upward returns the uses in sources, by file name, of what a higher layer declares.
func upward(tb testing.TB, sources map[string]string) (found []string) {
	tb.Helper()
	of, fset := layerOf(), token.NewFileSet()
	var files []*ast.File
	for name, source := range sources {
		if _, known := of[name]; !known {
			found = append(found, name+" is in no layer")
		}
		file, err := parser.ParseFile(fset, name, source, 0)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: fakeImporter{}, Error: func(error) {}} // for want of the contents of other packages
	pkg, _ := config.Check("queue", fset, files, info)
	for ident, used := range info.Uses {
		if used.Pkg() != pkg || !used.Pos().IsValid() {
			continue
		}
		user, owner := fset.Position(ident.Pos()), fset.Position(used.Pos()).Filename
		if of[user.Filename] < of[owner] {
			found = append(found, user.String()+" uses "+ident.Name+" of "+owner)
		}
	}
	return found
}

func TestFilesUseOnlyTheirLayerAndThoseBelow(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := make(map[string]string)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = string(source)
	}
	for _, use := range upward(t, sources) {
		t.Error(use)
	}
	if n := len(layerOf()); n != len(sources) {
		t.Errorf("%d files in the table, there are %d", n, len(sources))
	}
}

func TestUpwardUseIsFound(t *testing.T) {
	for name, source := range map[string]string{
		"a func":   "package queue\nfunc f() { g() }",
		"a method": "package queue\nfunc f(x *thing) { x.m() }\ntype _ struct{}",
		"a field":  "package queue\nfunc f(x thing) int { return x.n }",
	} {
		t.Run(name, func(t *testing.T) {
			found := upward(t, map[string]string{
				"pace.go": source,
				"fetcher.go": "package queue\nimport \"elsewhere\"\ntype thing struct{ n int; o elsewhere.T }\n" +
					"func (*thing) m() {}\nfunc g() {}",
			})
			if len(found) == 0 {
				t.Error("it is not found")
			}
		})
	}
	if found := upward(t, map[string]string{
		"fetcher.go": "package queue\nfunc f() { g() }",
		"pace.go":    "package queue\nfunc g() {}",
	}); len(found) != 0 {
		t.Errorf("found are %v", found)
	}
}
