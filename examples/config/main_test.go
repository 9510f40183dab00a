package main

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestServiceFollowsItsConfiguration(t *testing.T) {
	var out strings.Builder
	if err := run(testenv.Context(t), testenv.ConnectString(t), &out); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"search: 100 per second, at most 200ms each\n",
		"search: 250 per second, at most 200ms each\n",
		"search: 250 per second, at most 200ms each\n  the newest setting is not valid",
		"search: 300 per second, at most 1s each\n",
	} {
		i := strings.Index(out.String()[at:], want)
		if i < 0 {
			t.Fatalf("no %q behind byte %d in:\n%s", want, at, out.String())
		}
		at += i + len(want)
	}
}

func TestBadConnectStringIsRefused(t *testing.T) {
	if err := run(t.Context(), "//", &strings.Builder{}); err == nil {
		t.Error("no error")
	}
}

func TestDecodeLimitChecksValues(t *testing.T) {
	for _, data := range []string{``, `{}`, `{"rate": 0, "timeout": "1s"}`, `{"rate": 1, "timeout": "-1s"}`, `{"rate": 1}`} {
		if limit, err := decodeLimit("/a", []byte(data)); err == nil {
			t.Errorf("%s: %+v", data, limit)
		}
	}
}
