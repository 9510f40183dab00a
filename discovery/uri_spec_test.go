package discovery_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
)

func TestURISpecHasJavasParts(t *testing.T) {
	for _, tt := range []struct {
		spec  string
		parts []discovery.URISpecPart
		text  string // if it is not spec
		built string
	}{
		{spec: ""},
		{spec: "/x", parts: []discovery.URISpecPart{{Value: "/x"}}, built: "/x"},
		{
			spec: "{scheme}://{address}:{port}/x", parts: []discovery.URISpecPart{
				{Value: "scheme", Variable: true},
				{Value: "://"},
				{Value: "address", Variable: true},
				{Value: ":"},
				{Value: "port", Variable: true},
				{Value: "/x"},
			},
			built: "http://h:/x",
		},
		{spec: "{}", text: ""}, // no part
		{spec: "{ }a", parts: []discovery.URISpecPart{{Variable: true}, {Value: "a"}}, text: "{}a", built: "a"},
		{
			spec: "{ \taddress\x01}", parts: []discovery.URISpecPart{{Value: "address", Variable: true}},
			text: "{address}", built: "h",
		},
		{
			spec: "a{[}b{]}", parts: []discovery.URISpecPart{
				{Value: "a"},
				{Value: "[", Variable: true},
				{Value: "b"},
				{Value: "]", Variable: true},
			},
			built: "a{b}",
		},
	} {
		spec, err := discovery.ParseURISpec(tt.spec)
		if err != nil {
			t.Errorf("%q: %v", tt.spec, err)
			continue
		}
		if diff := cmp.Diff(tt.parts, spec.Parts()); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tt.spec, diff)
		}
		want := tt.spec
		if tt.text != "" || tt.parts == nil {
			want = tt.text
		}
		if spec.String() != want || spec.IsZero() != (tt.parts == nil) {
			t.Errorf("%q is %q, zero: %v", tt.spec, spec, spec.IsZero())
		}
		if got := spec.Build(map[string]string{"address": "h"}); got != tt.built {
			t.Errorf("%q builds %q, want %q", tt.spec, got, tt.built)
		}
	}
}

func TestURISpecRefusesBracesWithoutPartner(t *testing.T) {
	for _, spec := range []string{"{", "}", "{a", "a}", "{a{b}}", "{a}}", "{{"} {
		if got, err := discovery.ParseURISpec(spec); !errors.Is(err, framework.ErrBadArguments) {
			t.Errorf("%q is %q, %v", spec, got, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	discovery.MustParseURISpec("{")
}
