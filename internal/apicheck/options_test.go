package apicheck

import (
	"go/types"
	"strings"
	"testing"
)

// TestOptionsHaveOneForm checks each type whose name ends with Option: it is an interface with unexported methods, no
// other exported type implements it, and the functions that return it are named With… and have no boolean parameter.
func TestOptionsHaveOneForm(t *testing.T) {
	pkgs := loadModule(t)
	for _, pkg := range pkgs {
		for _, name := range pkg.Scope().Names() {
			switch obj := pkg.Scope().Lookup(name).(type) {
			case *types.TypeName:
				if obj.Exported() {
					checkOptionType(t, pkgs, obj)
				}
			case *types.Func:
				if obj.Exported() {
					checkOptionFunc(t, obj)
				}
			}
		}
	}
}

func checkOptionType(t *testing.T, pkgs []*types.Package, obj *types.TypeName) {
	t.Helper()
	if !isOption(obj.Type()) {
		for _, pkg := range pkgs {
			for _, name := range pkg.Scope().Names() {
				o := pkg.Scope().Lookup(name)
				if !o.Exported() || !isOption(o.Type()) {
					continue
				}
				if i, ok := o.Type().Underlying().(*types.Interface); ok && types.Implements(obj.Type(), i) {
					t.Errorf("%v is a %v: the types of options are not exported", obj.Type(), o.Type())
				}
			}
		}
		return
	}
	option, ok := obj.Type().Underlying().(*types.Interface)
	if !ok || option.NumMethods() == 0 {
		t.Errorf("%v is no interface with methods", obj.Type())
		return
	}
	for m := range option.Methods() {
		if m.Exported() {
			t.Errorf("%v has the exported method %s", obj.Type(), m.Name())
		}
	}
}

func checkOptionFunc(t *testing.T, obj *types.Func) {
	t.Helper()
	sig := obj.Signature()
	if sig.Results().Len() != 1 || !isOption(sig.Results().At(0).Type()) {
		return
	}
	if !strings.HasPrefix(obj.Name(), "With") {
		t.Errorf("%s.%s returns an option and is not named With…", obj.Pkg().Path(), obj.Name())
	}
	for p := range sig.Params().Variables() {
		if b, ok := p.Type().Underlying().(*types.Basic); ok && b.Kind() == types.Bool {
			t.Errorf("%s.%s has a boolean parameter: make it a pair, With… and Without…", obj.Pkg().Path(), obj.Name())
		}
	}
}

// isOption reports whether t is a named type of this module whose name ends with Option.
func isOption(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && isOurs(named.Obj().Pkg()) && strings.HasSuffix(named.Obj().Name(), "Option")
}
