package zkpath

import (
	"regexp"
	"testing"
)

const testID = "53345f98-9423-4e0c-a7b5-9f819e3ec2e1"

func TestProtect(t *testing.T) {
	tests := []struct {
		name            string
		id, path, want  string
		node, protected string // names of path and want
	}{
		{"usual", testID, "/base/lock-", "/base/_c_" + testID + "-lock-", "lock-", "_c_" + testID + "-lock-"},
		{"below the root", testID, "/lock", "/_c_" + testID + "-lock", "lock", "_c_" + testID + "-lock"},
		{"dashes", testID, "/a-b/c-d-", "/a-b/_c_" + testID + "-c-d-", "c-d-", "_c_" + testID + "-c-d-"},
		{"no id", "", "/base/lock-", "/base/lock-", "lock-", "lock-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ProtectPath(tt.id, tt.path); got != tt.want {
				t.Errorf("ProtectPath(%q) = %q, want %q", tt.path, got, tt.want)
			}
			if got := Protect(tt.id, tt.node); got != tt.protected {
				t.Errorf("Protect(%q) = %q, want %q", tt.node, got, tt.protected)
			}
			if got := NormalizePath(tt.want); got != tt.path {
				t.Errorf("NormalizePath(%q) = %q, want %q", tt.want, got, tt.path)
			}
			if got := Normalize(tt.protected); got != tt.node {
				t.Errorf("Normalize(%q) = %q, want %q", tt.protected, got, tt.node)
			}
			if id, ok := ProtectedID(tt.protected); id != tt.id || ok != (tt.id != "") {
				t.Errorf("ProtectedID(%q) = %q, %t, want %q", tt.protected, id, ok, tt.id)
			}
		})
	}
	if got, want := ProtectedPrefix(testID), "_c_"+testID+"-"; got != want {
		t.Errorf("ProtectedPrefix = %q, want %q", got, want)
	}
	// A sequential node without a name of its own; the digits follow.
	if got, want := ProtectPath(testID, "/base/"), "/base/_c_"+testID+"-"; got != want {
		t.Errorf("ProtectPath(/root/) = %q, want %q", got, want)
	}
}

func TestIsProtected(t *testing.T) {
	tests := []struct {
		name string
		node string
		want bool
	}{
		{"name", "_c_53345f98-9423-4e0c-a7b5-9f819e3ec2e1-name1", true},
		{"one character", "_c_53345f98-9423-4e0c-a7b5-9f819e3ec2e1-n", true},
		{"upper case", "_c_53345F98-9423-4E0C-A7B5-9F819E3EC2E1-n", true},
		{"empty", "", false},
		{"plain", "name1", false},
		{"nothing behind", "_c_53345f98-9423-4e0c-a7b5-9f819e3ec2e1-", false},
		{"only the start", "_c_", false},
		{"other start", "-c-53345f98-9423-4e0c-a7b5-9f819e3ec2e1-name1", false},
		{"no separator", "_c_53345f98-9423-4e0c-a7b5-9f819e3ec2e1_name1", false},
		{"dash elsewhere", "_c_53345f989423-4e0c-a7b5-9f819e3ec2e1aa-name1", false},
		{"no hex digit", "_c_53345g98-9423-4e0c-a7b5-9f819e3ec2e1-name1", false},
		{"go-zookeeper's own form", "_c_53345f9894234e0ca7b59f819e3ec2e1-lock-0000000001", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := IsProtected(tt.node); got != tt.want {
				t.Errorf("IsProtected(%q) = %t", tt.node, got)
			}
			if !tt.want {
				if got := Normalize(tt.node); got != tt.node {
					t.Errorf("Normalize(%q) = %q, want it unchanged", tt.node, got)
				}
				if got := NormalizePath("/a/" + tt.node); got != "/a/"+tt.node {
					t.Errorf("NormalizePath(%q) = %q, want it unchanged", "/a/"+tt.node, got)
				}
			}
		})
	}
}

func TestNewProtectionID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := NewProtectionID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("NewProtectionID() = %q, want another UUID of version 4", id)
		}
		seen[id] = true
		if got, ok := ProtectedID(Protect(id, "x")); !ok || got != id {
			t.Fatalf("ProtectedID = %q, %t, want %q", got, ok, id)
		}
	}
}

func BenchmarkNewProtectionID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewProtectionID()
	}
}
