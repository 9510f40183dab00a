package zkpath

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
)

type values = map[string]string

func TestTemplateMatchesWhatItExpands(t *testing.T) {
	tests := []struct {
		template Template
		values   values
		path     string
	}{
		{"/app/{tenant}/users/{id}", values{"tenant": "acme", "id": "7"}, "/app/acme/users/7"},
		{"/{a}/{b}", values{"a": "{b}", "b": "{a}"}, "/{b}/{a}"},
		{"/{users}/users/{id}", values{"users": "u", "id": "7"}, "/u/users/7"},
		{"/app", values{}, "/app"},
		{"/", values{}, "/"},
		{"/{the name}", values{"the name": "..."}, "/..."},
	}
	for _, tt := range tests {
		path, err := tt.template.Expand(tt.values)
		if err != nil || path != tt.path {
			t.Errorf("%s of %v is %q, %v, not %q", tt.template, tt.values, path, err, tt.path)
		}
		if got, ok := tt.template.Match(tt.path); !ok || !cmp.Equal(got, tt.values) {
			t.Errorf("%s has of %q %v, %t, not %v", tt.template, tt.path, got, ok, tt.values)
		}
	}
}

func TestTemplateRefuses(t *testing.T) {
	tests := map[string]struct {
		template Template
		values   values
	}{
		"a missing value":       {"/{a}/{b}", values{"a": "1"}},
		"another value":         {"/{a}", values{"a": "1", "b": "2"}},
		"an empty value":        {"/{a}", values{"a": ""}},
		"a slash":               {"/{a}", values{"a": "b/c"}},
		"the node above":        {"/{a}", values{"a": ".."}},
		"a control character":   {"/{a}", values{"a": "\x00"}},
		"no slash in front":     {"{a}", values{"a": "1"}},
		"an empty variable":     {"/{}", values{"": "1"}},
		"an open variable":      {"/{a", values{"a": "1"}},
		"a part of a name":      {"/user-{a}", values{"a": "1"}},
		"a variable in one":     {"/{{a}}", values{"{a}": "1"}},
		"one variable twice":    {"/{a}/{a}", values{"a": "1"}},
		"a slash in the braces": {"/{a/b}", values{"a/b": "1"}},
	}
	for name, tt := range tests {
		if path, err := tt.template.Expand(tt.values); !errors.Is(err, zk.ErrInvalidPath) {
			t.Errorf("%s: %q, %v", name, path, err)
		}
	}
}

func TestTemplateDoesNotMatch(t *testing.T) {
	for template, path := range map[Template]string{
		"/app/{id}":  "/app",
		"/app/{a}":   "/app/1/2",
		"/app/{b}":   "/other/1",
		"/app/{c}/x": "/app/1/y",
		"/{d}":       "/",
		"/{e":        "/{e",
		"/{f}":       "/f/",
	} {
		if got, ok := template.Match(path); ok {
			t.Errorf("%s has of %q %v", template, path, got)
		}
	}
}
