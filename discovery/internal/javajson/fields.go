package javajson

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// field is a field of a struct that encoding/json writes, perhaps one of an embedded struct.
type field struct {
	name                        string
	index                       []int
	tagged                      bool // the name is from a tag
	omitEmpty, omitZero, quoted bool
}

var fieldCache sync.Map // []field by reflect.Type

// fieldsOf returns the fields of a struct in their order.
func fieldsOf(t reflect.Type) []field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]field)
	}
	byName := make(map[string][]field)
	for _, f := range collect(t, nil, nil) {
		byName[f.name] = append(byName[f.name], f)
	}
	var fields []field
	for _, same := range byName {
		if f, ok := dominant(same); ok {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.index, b.index) })
	fieldCache.Store(t, fields)
	return fields
}

// collect returns the fields of t and of the structs in it, whose fields may hide each other. within are the structs
// around t.
func collect(t reflect.Type, index []int, within []reflect.Type) (fields []field) {
	if slices.Contains(within, t) {
		return nil
	}
	within = append(slices.Clip(within), t)
	for i := range t.NumField() {
		f := t.Field(i)
		of := f.Type
		if of.Name() == "" && of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && (!f.Anonymous || of.Kind() != reflect.Struct) {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !isName(name) {
			name = ""
		}
		at := append(slices.Clip(index), i)
		if f.Anonymous && name == "" && of.Kind() == reflect.Struct {
			fields = append(fields, collect(of, at, within)...)
			continue
		}
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		fields = append(fields, field{
			name: cmp.Or(name, f.Name), index: at, tagged: name != "",
			omitEmpty: has("omitempty"), omitZero: has("omitzero"), quoted: has("string") && isQuotable(of.Kind()),
		})
	}
	return fields
}

// dominant returns the field that a name stands for: of those least deep the only one, or the only one with a tag.
func dominant(same []field) (field, bool) {
	best := slices.MinFunc(same, func(a, b field) int {
		return cmp.Or(cmp.Compare(len(a.index), len(b.index)), cmp.Compare(rank(a), rank(b)))
	})
	n := 0
	for _, f := range same {
		if len(f.index) == len(best.index) && f.tagged == best.tagged {
			n++
		}
	}
	return best, n == 1
}

// rank orders fields of one depth.
func rank(f field) int {
	if f.tagged {
		return 0
	}
	return 1
}

// isName reports whether encoding/json takes a name from a tag.
func isName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return name != ""
}

func isQuotable(k reflect.Kind) bool {
	return k == reflect.Bool || k >= reflect.Int && k <= reflect.Float64 || k == reflect.String
}

// fieldOf returns a field of v. ok is false if it is in an embedded struct that is nil.
func fieldOf(v reflect.Value, index []int) (f reflect.Value, ok bool) {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// isEmpty is what encoding/json means by omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero is what encoding/json means by omitzero.
func isZero(v reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return true
	case v.CanInterface():
		if z, ok := v.Interface().(zeroer); ok {
			return z.IsZero()
		}
		if v.CanAddr() {
			if z, ok := v.Addr().Interface().(zeroer); ok {
				return z.IsZero()
			}
		}
	}
	return v.IsZero()
}
