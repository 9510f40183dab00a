package digest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/sasl/digest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestMechanismShowsNoSecret(t *testing.T) {
	t.Parallel()
	m := digest.New("bob", "hidden")
	for _, v := range []any{m, *m, struct{ M *digest.Mechanism }{m}, struct{ m digest.Mechanism }{*m}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "hidden") || strings.Contains(got, "68696464656e") {
				t.Errorf("%s of %T is %s", verb, v, got)
			}
		}
	}
}

func TestCredentialsOfAFunction(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	gone := errors.New("the vault is closed")
	asked := 0
	m := digest.NewFunc(func(context.Context) (string, string, error) {
		asked++
		if asked == 3 {
			return "", "", gone
		}
		return "bob", "secret", nil
	})
	for range 2 {
		if _, err := m.Start(ctx, "host"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Start(ctx, "host"); !errors.Is(err, gone) || errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("the error is %v", err)
	}
	if _, err := digest.New("", "secret").Start(ctx, "host"); !errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("without a user: %v", err)
	}
}
