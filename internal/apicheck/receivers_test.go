package apicheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReceiversHaveOneName checks that all methods of a type name their receiver alike, in tests and programs too.
func TestReceiversHaveOneName(t *testing.T) {
	names := map[string]map[string]bool{} // of the receivers, by directory and type
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && len(fn.Recv.List[0].Names) == 1 {
				of := filepath.Dir(file) + "." + receiverType(fn.Recv.List[0].Type)
				if names[of] == nil {
					names[of] = map[string]bool{}
				}
				names[of][fn.Recv.List[0].Names[0].Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range slices.Sorted(maps.Keys(names)) {
		if len(names[of]) > 1 {
			t.Errorf("%s has receivers named %v", of, slices.Sorted(maps.Keys(names[of])))
		}
	}
}

// receiverType returns the name of the type of a receiver, without its pointer and its type parameters.
func receiverType(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.IndexListExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
