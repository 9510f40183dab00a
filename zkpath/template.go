package zkpath

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Template is a path with variables: "/app/{tenant}/users/{id}". A variable is a whole name of the path, and no two
// have one name. In Java: ZPath.parseWithIds.
type Template string

// Expand returns the path with the values of all variables. It returns an error that matches [zk.ErrInvalidPath] if a
// value is missing, empty or of no variable, if a value is no name of a node, as one with a slash, or if the template
// itself is invalid. In Java: ZPath.resolved, which takes the values in their order.
func (t Template) Expand(values map[string]string) (string, error) {
	variables, err := t.Variables()
	if err != nil {
		return "", err
	}
	known := make(map[string]bool, len(variables))
	for _, variable := range variables {
		known[variable] = true
		value, ok := values[variable]
		switch {
		case !ok:
			return "", t.fault("no value of {%s}", variable)
		case value == "" || strings.Contains(value, "/"):
			return "", t.fault("the value %q of {%s} is no name of a node", value, variable)
		}
	}
	for variable := range values {
		if !known[variable] {
			return "", t.fault("no variable {%s}", variable)
		}
	}
	names := strings.Split(string(t), "/")
	for i, name := range names {
		if variable, ok := variableOf(name); ok {
			names[i] = values[variable]
		}
	}
	path := strings.Join(names, "/")
	return path, Validate(path, false)
}

// Match returns the values of the variables in path. ok is false if path does not have the form of the template, which
// no path has if the template is invalid.
func (t Template) Match(path string) (values map[string]string, ok bool) {
	if _, err := t.Variables(); err != nil || Validate(path, false) != nil {
		return nil, false
	}
	names, got := Split(string(t)), Split(path)
	if len(names) != len(got) {
		return nil, false
	}
	values = make(map[string]string)
	for i, name := range names {
		if variable, ok := variableOf(name); ok {
			values[variable] = got[i]
		} else if name != got[i] {
			return nil, false
		}
	}
	return values, true
}

// Variables returns the names of the variables, in their order. The error matches [zk.ErrInvalidPath].
func (t Template) Variables() (variables []string, err error) {
	if err := Validate(string(t), false); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, name := range Split(string(t)) {
		variable, ok := variableOf(name)
		switch {
		case !ok && strings.ContainsAny(name, "{}"), ok && (variable == "" || strings.ContainsAny(variable, "{}")):
			return nil, t.fault("%q is neither a name nor a variable", name)
		case ok && seen[variable]:
			return nil, t.fault("{%s} is there twice", variable)
		case ok:
			seen[variable] = true
			variables = append(variables, variable)
		}
	}
	return variables, nil
}

// variableOf returns the variable that a name of a template is.
func variableOf(name string) (variable string, ok bool) {
	rest, begins := strings.CutPrefix(name, "{")
	variable, ends := strings.CutSuffix(rest, "}")
	return variable, begins && ends
}

func (t Template) fault(format string, args ...any) error {
	return fmt.Errorf("%w: template %q: %s", zk.ErrInvalidPath, string(t), fmt.Sprintf(format, args...))
}
