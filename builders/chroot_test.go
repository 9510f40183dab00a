package builders_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestSequentialNodeOfTheRootStaysBelowTheChroot(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client, err := framework.New(testenv.ConnectString(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	path, err := client.Create().WithMode(builders.PersistentSequential).ForPath(ctx, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	children, err := client.GetChildren().ForPath(ctx, "/")
	if err != nil || len(children) != 1 || "/"+children[0] != path || strings.Count(path, "/") != 1 {
		t.Errorf("created %q, children %v: %v", path, children, err)
	}
}

// The chroot counts too: a request that is a little too large is not sent.
func TestRequestThatIsTooLargeWithItsChrootIsNotSent(t *testing.T) {
	t.Parallel()
	client, err := framework.New(testenv.ConnectString(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	if _, err := client.Create().ForPath(ctx, "/n", nil); err != nil {
		t.Fatal(err)
	}
	session := client.SessionID()
	large := make([]byte, framework.DefaultMaxBuffer-len("/n")-32)
	if _, err := client.SetData().ForPath(ctx, "/n", large); err == nil {
		t.Error("sent")
	}
	if client.SessionID() != session || !client.IsConnected() {
		t.Error("the server has hung up")
	}
}
