package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declarations are the names that Go files declare: functions, methods and fields with their types, and each of them
// with its package, too.
type declarations map[string]bool

// declarationsIn reads the files below some directories: the tests, or all others.
func declarationsIn(t *testing.T, tests bool, dirs ...string) declarations {
	t.Helper()
	d := declarations{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") != tests {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			d.addFile(file)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d declarations) addFile(file *ast.File) {
	add := func(name string) { d[name], d[file.Name.Name+"."+name] = true, true }
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(receiver(decl) + decl.Name.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name)
					d.addFields(spec)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name)
					}
				}
			}
		}
	}
}

// receiver returns the type of a method with a dot behind it, or "".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "."
		default:
			return ""
		}
	}
}

func (d declarations) addFields(spec *ast.TypeSpec) {
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			d[spec.Name.Name+"."+name.Name] = true
		}
	}
}

func codeDeclarations(t *testing.T) declarations {
	t.Helper()
	return declarationsIn(t, false, "../builders", "../callbacks", "../framework", "../internal", "../recipes", "../retry")
}

// dotted is a name with its type or its package.
var dotted = regexp.MustCompile(`^\w+(\.\w+)+$`)

// TestDesignNamesDeclarationsThatExist looks for what the pages on the design name: those with a dot in any place, and
// all of the table that has a step of the model beside the code.
func TestDesignNamesDeclarationsThatExist(t *testing.T) {
	code := codeDeclarations(t)
	model := declarationsIn(t, true, "../internal/model")
	pages, err := filepath.Glob("design/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked, steps := 0, 0
	check := func(page, name string, where ...declarations) {
		checked++
		if !slices.ContainsFunc(where, func(d declarations) bool { return d[name] }) {
			t.Errorf("%s: there is no %s", page, name)
		}
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		inSteps := false
		for line := range strings.Lines(string(text)) {
			inSteps = strings.HasPrefix(line, "| Model | Code |") || inSteps && strings.HasPrefix(line, "|")
			if cells := strings.Split(line, "|"); inSteps {
				steps++
				for i, where := range []declarations{1: model, 2: code} {
					for _, name := range quoted.FindAllStringSubmatch(cells[i], -1) {
						check(page, name[1], where)
					}
				}
				continue
			}
			for _, name := range quoted.FindAllStringSubmatch(line, -1) {
				if dotted.MatchString(name[1]) && !strings.HasSuffix(name[1], ".go") {
					check(page, name[1], code, model)
				}
			}
		}
	}
	if checked < 60 || steps < 15 {
		t.Errorf("%d names, %d lines of the table", checked, steps)
	}
}

// TestModelNamesDeclarationsThatExist does so for the comments of the model, which name the code that a step mirrors.
func TestModelNamesDeclarationsThatExist(t *testing.T) {
	code := codeDeclarations(t)
	files, err := filepath.Glob("../internal/model/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\w+(\.\w+)+|\w*[a-z][A-Z]\w*`)
	checked := 0
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, comment := range file.Comments {
			_, mirrored, _ := strings.Cut(comment.Text(), "n the code: ")
			for _, name := range name.FindAllString(mirrored, -1) {
				if checked++; !code[name] {
					t.Errorf("%s: there is no %s", path, name)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d names", checked)
	}
}
