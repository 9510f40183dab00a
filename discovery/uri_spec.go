package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gocurator/curator/framework"
)

// URISpec is the text of a URI with variables in braces: "{scheme}://{address}:{port}/orders". [ServiceInstance.URI]
// has the list of variables. The zero value is no URI. In Java: UriSpec.
type URISpec struct{ parts []URISpecPart }

// URISpecPart is a variable of a [URISpec], or the text between variables. In Java: UriSpec.Part.
type URISpecPart struct {
	Value    string // the name of the variable, or the text
	Variable bool
}

// ParseURISpec reads a text with variables. Spaces around the name of a variable do not count. "{[}" and "{]}" stand
// for braces. The error matches [framework.ErrBadArguments] if braces are not in pairs or inside of each other. In
// Java: new UriSpec(String).
func ParseURISpec(spec string) (URISpec, error) {
	fault := func(what string) (URISpec, error) {
		return URISpec{}, fmt.Errorf("discovery: %w: URI spec %q: %s", framework.ErrBadArguments, spec, what)
	}
	var parts []URISpecPart
	inside := false
	for rest := spec; rest != ""; {
		text := rest
		if i := strings.IndexAny(rest, "{}"); i >= 0 {
			text = rest[:max(i, 1)]
		}
		rest = rest[len(text):]
		switch {
		case text == "{" && inside:
			return fault("a { inside of a variable")
		case text == "}" && !inside:
			return fault("a } without a {")
		case text == "{" || text == "}":
			inside = text == "{"
		case inside:
			name := strings.TrimFunc(text, func(r rune) bool { return r <= ' ' }) // String.trim
			parts = append(parts, URISpecPart{Value: name, Variable: true})
		default:
			parts = append(parts, URISpecPart{Value: text})
		}
	}
	if inside {
		return fault("the last variable has no }")
	}
	return URISpec{parts}, nil
}

// MustParseURISpec is [ParseURISpec] for a constant. It panics instead of returning an error.
func MustParseURISpec(spec string) URISpec {
	s, err := ParseURISpec(spec)
	if err != nil {
		panic(err)
	}
	return s
}

// Parts returns the parts in their order. In Java: getParts.
func (s URISpec) Parts() []URISpecPart { return slices.Clone(s.parts) }

// IsZero reports whether the spec has no part.
func (s URISpec) IsZero() bool { return len(s.parts) == 0 }

// Equal reports whether two specs have the same parts.
func (s URISpec) Equal(other URISpec) bool { return slices.Equal(s.parts, other.parts) }

// String returns the text that [ParseURISpec] reads.
func (s URISpec) String() string {
	var b strings.Builder
	for _, part := range s.parts {
		if part.Variable {
			b.WriteString("{" + part.Value + "}")
		} else {
			_, _ = braces.WriteString(&b, part.Value)
		}
	}
	return b.String()
}

// braces are how a text has them that are no variables.
var braces = strings.NewReplacer("{", "{[}", "}", "{]}")

// Build returns the URI for the values of the variables. The scheme is "http" unless variables has one. A variable
// without a value is empty. In Java: build(Map).
func (s URISpec) Build(variables map[string]string) string {
	var b strings.Builder
	for _, part := range s.parts {
		switch value, ok := variables[part.Value]; {
		case !part.Variable:
			b.WriteString(part.Value)
		case ok:
			b.WriteString(value)
		default:
			b.WriteString(defaultVariables[part.Value])
		}
	}
	return b.String()
}

// defaultVariables are those that need no instance.
var defaultVariables = map[string]string{"[": "{", "]": "}", "scheme": "http"}
