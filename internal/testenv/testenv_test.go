package testenv_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/testenv"
)

func TestServerIsShared(t *testing.T) {
	server := testenv.Server(t)
	if testenv.Server(t) != server {
		t.Error("two servers")
	}
	answer, err := server.FourLetterWord(testenv.Context(t), "srvr")
	if err != nil || !strings.Contains(answer, "Mode: standalone") {
		t.Errorf("%s, error %v", answer, err)
	}
}

func TestServerOfTheEnvironment(t *testing.T) {
	own := testenv.Server(t).Addr()
	t.Setenv("ZOOKEEPER_CONNECT", "")
	if got := testenv.Addr(t); got != own {
		t.Errorf("at %s, not at %s", got, own)
	}
	t.Setenv("ZOOKEEPER_CONNECT", own+","+own)
	if got := testenv.Addr(t); got != own+","+own {
		t.Errorf("at %s", got)
	}
	if got := testenv.ConnectString(t); !strings.HasPrefix(got, own+","+own+"/t-") {
		t.Errorf("connect string %s", got)
	}
}

func TestChroot(t *testing.T) {
	var roots []string
	t.Run("with / and space", func(t *testing.T) {
		raw := testenv.Raw(t)
		addr, root, _ := strings.Cut(testenv.ConnectString(t), "/")
		if addr != testenv.Addr(t) {
			t.Errorf("at %s, not at %s", addr, testenv.Addr(t))
		}
		roots = append(roots, "/"+root, testenv.Chroot(t))
		for _, root := range roots {
			for _, node := range []string{"/a", "/a/b", "/c"} {
				if _, err := raw.Create(root+node, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					t.Errorf("create %s: %v", root+node, err)
				}
			}
		}
	})
	if len(roots) != 2 || roots[0] == roots[1] {
		t.Fatalf("roots %v", roots)
	}
	children, _, err := testenv.Raw(t).Children("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range roots {
		if slices.Contains(children, root[1:]) {
			t.Errorf("%s is left", root)
		}
	}
}

func TestEventually(t *testing.T) {
	calls := 0
	testenv.Eventually(t, func() bool {
		calls++
		return calls == 3
	}, "called three times")
}

func TestContextEndsWithTheTest(t *testing.T) {
	var done <-chan struct{}
	t.Run("test", func(t *testing.T) {
		ctx := testenv.Context(t)
		if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil {
			t.Errorf("deadline %t, error %v", ok, ctx.Err())
		}
		done = ctx.Done()
	})
	<-done
}
