package apicheck

import (
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"
)

const module = "github.com/gocurator/curator"

// surface collects the lines of one package.
type surface struct {
	pkg   *types.Package
	lines []string
}

// surfaceOf returns one line for each exported declaration of a package, sorted.
func surfaceOf(pkg *types.Package) []string {
	s := &surface{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			s.addObject(obj)
		}
	}
	slices.Sort(s.lines)
	return slices.Compact(s.lines)
}

func (s *surface) add(format string, args ...any) {
	s.lines = append(s.lines, relative(s.pkg)+": "+fmt.Sprintf(format, args...))
}

func (s *surface) addObject(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		s.add("const %s %s = %s", obj.Name(), s.text(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		s.add("var %s %s", obj.Name(), s.text(obj.Type()))
	case *types.Func:
		s.add("func %s%s", obj.Name(), s.signature(obj.Type()))
	case *types.TypeName:
		s.addType(obj)
	}
}

func (s *surface) addType(obj *types.TypeName) {
	if obj.IsAlias() {
		target := types.Unalias(obj.Type())
		s.add("type %s = %s", obj.Name(), s.text(target))
		// The members of an internal type have no lines of their own.
		if named, ok := target.(*types.Named); ok && isInternal(named.Obj().Pkg()) {
			s.addMembers(obj.Name(), target)
		}
		return
	}
	switch u := obj.Type().Underlying().(type) {
	case *types.Struct:
		s.add("type %s struct", s.text(obj.Type()))
	case *types.Interface:
		if !u.IsMethodSet() {
			s.add("type %s %s", s.text(obj.Type()), s.text(u)) // a constraint
			return
		}
		s.add("type %s interface", s.text(obj.Type()))
	default:
		s.add("type %s %s", s.text(obj.Type()), s.text(u))
	}
	s.addMembers(receiver(obj), obj.Type())
}

// receiver returns the name of a type with the names of its type parameters: "Builder[T]".
func receiver(obj *types.TypeName) string {
	named, ok := obj.Type().(*types.Named)
	if !ok || named.TypeParams().Len() == 0 {
		return obj.Name()
	}
	var params []string
	for p := range named.TypeParams().TypeParams() {
		params = append(params, p.Obj().Name())
	}
	return obj.Name() + "[" + strings.Join(params, ", ") + "]"
}

// addMembers adds the exported fields and methods of a type under a name.
func (s *surface) addMembers(name string, t types.Type) {
	switch u := t.Underlying().(type) {
	case *types.Interface:
		for e := range u.EmbeddedTypes() { // go doc shows their names
			s.add("type %s interface { %s }", name, s.text(e))
		}
		for m := range u.Methods() {
			if !m.Exported() {
				s.add("type %s interface { unexported methods }", name)
				continue
			}
			s.add("type %s interface { %s%s }", name, m.Name(), s.signature(m.Type()))
		}
		return
	case *types.Struct:
		s.addFields(name, u)
	}
	ofValues := types.NewMethodSet(t)
	for method := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		m := method.Obj()
		// What comes from an embedded type of another module depends on its version. The field has a line.
		if !m.Exported() || !isOurs(m.Pkg()) {
			continue
		}
		of := name
		if ofValues.Lookup(m.Pkg(), m.Name()) == nil {
			of = "*" + name
		}
		s.add("func (%s) %s%s", of, m.Name(), s.signature(method.Type()))
	}
}

// addFields adds the fields of a struct, those of embedded unexported structs included.
func (s *surface) addFields(name string, u *types.Struct) {
	for f := range u.Fields() {
		switch {
		case f.Exported() && f.Embedded():
			s.add("type %s struct { %s }", name, s.text(f.Type()))
		case f.Exported():
			s.add("type %s struct { %s %s }", name, f.Name(), s.text(f.Type()))
		default:
			s.add("type %s struct { unexported fields }", name)
			if inner, ok := structOf(f.Type()); ok && f.Embedded() {
				s.addFields(name, inner)
			}
		}
	}
}

func structOf(t types.Type) (*types.Struct, bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	u, ok := t.Underlying().(*types.Struct)
	return u, ok
}

// text returns a type as the package itself writes it; a package of this module stands with its directory.
func (s *surface) text(t types.Type) string {
	return types.TypeString(t, func(pkg *types.Package) string {
		switch {
		case pkg == s.pkg:
			return ""
		case isOurs(pkg):
			return relative(pkg)
		default:
			return pkg.Name()
		}
	})
}

func (s *surface) signature(t types.Type) string {
	return strings.TrimPrefix(s.text(t), "func")
}

// relative returns the directory of a package of this module.
func relative(pkg *types.Package) string {
	return strings.TrimPrefix(pkg.Path(), module+"/")
}

func isOurs(pkg *types.Package) bool {
	return pkg != nil && strings.HasPrefix(pkg.Path(), module+"/")
}

func isInternal(pkg *types.Package) bool {
	return isOurs(pkg) && slices.Contains(strings.Split(relative(pkg), "/"), "internal")
}

// leaksOf returns the names of the declarations, among the lines of a surface, whose type is of an internal package.
func leaksOf(lines []string) []string {
	var found []string
	for _, line := range lines {
		if strings.Contains(line, "internal/") {
			found = append(found, declared(line))
		}
	}
	return slices.Compact(found)
}

// declared returns the name that a line declares, as "locks.Hold.Release": package, type and member.
func declared(line string) string {
	pkg, rest, _ := strings.Cut(line, ": ")
	kind, rest, _ := strings.Cut(rest, " ")
	name := path.Base(pkg)
	if of, method, ok := strings.Cut(rest, ") "); ok && kind == "func" && strings.HasPrefix(of, "(") {
		return name + "." + upTo(strings.TrimLeft(of, "(*"), "[") + "." + upTo(method, "(")
	}
	if of, member, ok := strings.Cut(rest, " { "); ok && kind == "type" {
		member = upTo(member, "( ")
		member = member[strings.LastIndexAny(member, "*.")+1:] // an embedded field has the name of its type
		return name + "." + upTo(of, "[ ") + "." + member
	}
	return name + "." + upTo(rest, "[( ")
}

// upTo returns s up to the first of some characters.
func upTo(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}
