package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gocurator/curator"

// portingRow is one row of porting.tsv.
type portingRow struct {
	class, member string // member is empty for the class itself
	here          string // symbols of this module, or "-" and the reason why there are none
}

func (r portingRow) String() string { return strings.TrimSpace(r.class + " " + r.member) }

// TestPortingNamesExist checks that every row of porting.tsv has exported symbols that exist, or a reason.
func TestPortingNamesExist(t *testing.T) {
	source := newSource()
	for _, row := range portingRows(t) {
		reason, none := strings.CutPrefix(row.here, "-")
		switch {
		case none && strings.TrimSpace(reason) == "":
			t.Errorf("%s: no reason", row)
		case strings.HasPrefix(reason, " later"):
			t.Errorf("%s: a promise is no reason", row)
		case none:
		default:
			for symbol := range strings.SplitSeq(row.here, ", ") {
				if err := source.check(symbol); err != nil {
					t.Errorf("%s: %v", row, err)
				}
			}
		}
	}
}

// TestPortingCoversJavaSurface checks that porting.tsv has one row for each class and member of Java, and no other.
func TestPortingCoversJavaSurface(t *testing.T) {
	rows := make(map[string]bool)
	for _, row := range portingRows(t) {
		if rows[row.String()] {
			t.Errorf("%s: two rows", row)
		}
		rows[row.String()] = true
	}
	for _, name := range javaSurface(t) {
		if !rows[name] {
			t.Errorf("%s: no row", name)
		}
		delete(rows, name)
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Errorf("%s: not in testdata/java-surface.txt", name)
	}
}

func portingRows(t *testing.T) []portingRow {
	t.Helper()
	text, err := os.ReadFile("porting.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows []portingRow
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 3 {
			t.Fatalf("%q: %d columns, not 3", line, len(columns))
		}
		rows = append(rows, portingRow{class: columns[0], member: columns[1], here: columns[2]})
	}
	return rows
}

// javaSurface returns the names of testdata/java-surface.txt: of each class, then of each of its members.
func javaSurface(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "java-surface.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		class, members, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("%q: no class", line)
		}
		names = append(names, class)
		for _, member := range strings.Fields(members) {
			names = append(names, class+" "+member)
		}
	}
	return names
}

// source is the module, package by package as it is asked for.
type source struct {
	root     string
	packages map[string]*symbols
}

func newSource() *source { return &source{root: "..", packages: make(map[string]*symbols)} }

// symbols are the exported names of a package.
type symbols struct {
	names   map[string]bool            // of the package
	members map[string]map[string]bool // methods and fields, by type
	also    map[string][]string        // types whose members a type has too, as symbols
}

// check returns what is wrong with a symbol such as "framework.Client.Create".
func (s *source) check(symbol string) error {
	slash := strings.LastIndex(symbol, "/") + 1
	parts := strings.Split(symbol[slash:], ".")
	if len(parts) < 2 || len(parts) > 3 || strings.ContainsAny(symbol, " \t") {
		return fmt.Errorf("%q is no symbol", symbol)
	}
	for _, part := range parts[1:] {
		if !ast.IsExported(part) {
			return fmt.Errorf("%s is not exported", symbol)
		}
	}
	pkg := symbol[:slash] + parts[0]
	found, err := s.load(pkg)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", symbol, err)
	case !found.names[parts[1]]:
		return fmt.Errorf("there is no %s", symbol)
	case len(parts) == 3 && !s.has(pkg, parts[1], parts[2]):
		return fmt.Errorf("there is no %s", symbol)
	}
	return nil
}

// has reports whether a type has a member, of its own or from a type that it embeds or is another name of.
func (s *source) has(pkg, typ, member string) bool {
	p, err := s.load(pkg)
	if err != nil {
		return false
	}
	if p.members[typ][member] {
		return true
	}
	for _, other := range p.also[typ] {
		i := strings.LastIndex(other, ".")
		if s.has(other[:i], other[i+1:], member) {
			return true
		}
	}
	return false
}

// load parses a package of the module.
func (s *source) load(pkg string) (*symbols, error) {
	if p, ok := s.packages[pkg]; ok {
		return p, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(pkg))
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &symbols{
		names: make(map[string]bool), members: make(map[string]map[string]bool), also: make(map[string][]string),
	}
	for _, file := range files {
		name := file.Name()
		if file.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) { // a temporary file that is gone again
			continue
		}
		if err != nil {
			return nil, err
		}
		p.add(pkg, parsed)
	}
	s.packages[pkg] = p
	return p, nil
}

func (p *symbols) add(pkg string, file *ast.File) {
	imports := make(map[string]string) // of this module, by their names
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if rest, ok := strings.CutPrefix(path, module+"/"); ok {
			name := rest[strings.LastIndex(rest, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = rest
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.names[d.Name.Name] = true
			} else {
				p.member(baseName(d.Recv.List[0].Type), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.TypeSpec:
					p.names[sp.Name.Name] = true
					p.addType(pkg, sp.Name.Name, sp.Type, sp.Assign.IsValid(), imports)
				case *ast.ValueSpec:
					for _, name := range sp.Names {
						p.names[name.Name] = true
					}
				}
			}
		}
	}
}

func (p *symbols) addType(pkg, name string, typ ast.Expr, alias bool, imports map[string]string) {
	var fields *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		if alias {
			p.alsoHas(pkg, name, typ, imports)
		}
		return
	}
	for _, field := range fields.List {
		for _, n := range field.Names {
			p.member(name, n.Name)
		}
		if len(field.Names) == 0 { // embedded
			p.member(name, baseName(field.Type))
			p.alsoHas(pkg, name, field.Type, imports)
		}
	}
}

// alsoHas gives a type the members of another one, if that is in this module.
func (p *symbols) alsoHas(pkg, name string, typ ast.Expr, imports map[string]string) {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	switch t := typ.(type) {
	case *ast.Ident:
		p.also[name] = append(p.also[name], pkg+"."+t.Name)
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok && imports[x.Name] != "" {
			p.also[name] = append(p.also[name], imports[x.Name]+"."+t.Sel.Name)
		}
	}
}

func (p *symbols) member(typ, name string) {
	if p.members[typ] == nil {
		p.members[typ] = make(map[string]bool)
	}
	p.members[typ][name] = true
}

// baseName returns the name of a type without pointer, package and type parameters.
func baseName(typ ast.Expr) string {
	switch t := typ.(type) {
	case *ast.StarExpr:
		return baseName(t.X)
	case *ast.IndexExpr:
		return baseName(t.X)
	case *ast.IndexListExpr:
		return baseName(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}
