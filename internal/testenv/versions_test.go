package testenv

import (
	"errors"
	"testing"

	"github.com/gocurator/curator/curatortest"
)

func TestExpectedVersion(t *testing.T) {
	t.Setenv(versionsVariable, "zookeeper=3.9.3 curator=5.7.1")
	if zk, c := ExpectedVersion(ZooKeeper), ExpectedVersion(Curator); zk != "3.9.3" || c != "5.7.1" {
		t.Errorf("ZooKeeper %q, Curator %q", zk, c)
	}
	t.Setenv(versionsVariable, "")
	if v := ExpectedVersion(ZooKeeper); v != "" {
		t.Errorf("%q of nothing", v)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"3.8.0": {3, 8, 0},
		"Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2025-05-20 10:00 UTC": {3, 8, 0},
		"10.20.30": {10, 20, 30},
	} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%q: %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3.8", "99999999999999999999.0.0"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}

func TestVersionAtLeast(t *testing.T) {
	tests := []struct {
		v, other Version
		want     bool
	}{
		{Version{3, 9, 0}, Version{3, 9, 0}, true},
		{Version{3, 9, 1}, Version{3, 9, 0}, true},
		{Version{3, 10, 0}, Version{3, 9, 9}, true},
		{Version{4, 0, 0}, Version{3, 9, 9}, true},
		{Version{3, 8, 9}, Version{3, 9, 0}, false},
	}
	for _, tt := range tests {
		if got := tt.v.AtLeast(tt.other); got != tt.want {
			t.Errorf("%v at least %v: %t", tt.v, tt.other, got)
		}
	}
}

// TestServerVersion checks that a run about a version refuses a server of another.
func TestServerVersion(t *testing.T) {
	server := curatortest.NewServerT(t)
	if v := VersionOf(t, server); v != (Version{3, 8, 0}) {
		t.Errorf("the server in memory is %v", v)
	}
	for versions, ok := range map[string]bool{
		"":                              true,
		"curator=5.7.1":                 true,
		"zookeeper=3.8.0":               true,
		"zookeeper=3.9.3 curator=5.7.1": false,
	} {
		t.Setenv(versionsVariable, versions)
		if err := checkVersion(server); (err == nil) != ok {
			t.Errorf("%q: error %v", versions, err)
		}
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(versionsVariable, "zookeeper=3.8.0")
	if err := checkVersion(server); err == nil || errors.Is(err, curatortest.ErrNoZooKeeper) {
		t.Errorf("of a stopped server: %v", err)
	}
}
