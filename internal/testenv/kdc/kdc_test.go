package kdc_test

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/kdc"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestServer(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	s := kdc.New(t)
	s.Add("alice", "secret")
	keytab := s.Keytab("alice")
	s.Cache("alice", keytab)
	s.Stop()
	s.Start()
	s.Cache("alice", keytab)
	if n := strings.Count(s.Log(), "ISSUE: "); n != 2 {
		t.Errorf("%d tickets, want 2:\n%s", n, s.Log())
	}
}
