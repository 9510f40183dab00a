package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// queueLayers are the files of recipes/queue, above its packages, lowest first. A file uses files of its own layer and
// of those below.
var queueLayers = [][]string{
	{"errors"},
	{"options", "info", "fence", "simple_queue"},
	{"queue"},
	{"consumer", "depth"},
	{"corrupt_item", "items"},
	{"life"},
	{"distributed_queue", "priority_queue", "delay_queue", "id_queue"},
	{"builder"},
	{"shard"},
	{"sharder"},
	{"doc"},
}

func TestQueueLayers(t *testing.T) {
	layers := map[string]int{}
	for i, layer := range queueLayers {
		for _, file := range layer {
			layers[file] = i + 1
		}
	}
	uses := usesOf(t, "../../recipes/queue")
	if len(uses) < 10 {
		t.Fatalf("%d files use others", len(uses))
	}
	for from, others := range uses {
		if layers[from] == 0 {
			t.Errorf("%s.go has no layer: add it to queueLayers", from)
		}
		for to, name := range others {
			if layers[to] > layers[from] {
				t.Errorf("%s.go uses %s of %s.go, which is above it", from, name, to)
			}
		}
	}
}

// usesOf returns for each file of a package the other files that it uses, each with one of the used names.
func usesOf(t *testing.T, dir string) map[string]map[string]string {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	fset := token.NewFileSet()
	files := make([]*ast.File, len(names))
	for i, name := range names {
		if files[i], err = parser.ParseFile(fset, name, nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	fileOf := func(pos token.Pos) string {
		return strings.TrimSuffix(filepath.Base(fset.Position(pos).Filename), ".go")
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}} // there are errors: what is imported is empty
	pkg, _ := config.Check(dir, fset, files, info)
	uses := map[string]map[string]string{}
	for ident, object := range info.Uses {
		if object.Pkg() != pkg {
			continue
		}
		from, to := fileOf(ident.Pos()), fileOf(object.Pos())
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]string{}
		}
		uses[from][to] = object.Name()
	}
	return uses
}

// nothing imports empty packages, because only the names of one package matter.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, filepath.Base(name))
	p.MarkComplete()
	return p, nil
}
