package docs_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
)

func TestAsyncSnippetsReadWhatIsThere(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	ctx := testenv.Context(t)
	for path, data := range map[string]string{
		"/a": "1", "/b": "2", "/workers/a": "idle", "/workers/b": "busy", "/limits": `{"rate":7}`,
	} {
		if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, path, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if both, err := readBoth(ctx, client); err != nil || both != "12" {
		t.Errorf("both nodes: %s, %v", both, err)
	}
	workers := make(map[string]string)
	err := workersWithData(ctx, client, func(path string, data []byte) { workers[path] = string(data) })
	if err != nil || !cmp.Equal(workers, map[string]string{"/workers/a": "idle", "/workers/b": "busy"}) {
		t.Errorf("workers: %v, %v", workers, err)
	}
	looking, stop := context.WithCancel(ctx)
	err = cachedLimits(looking, client, func(path string, l Limits) {
		if path != "/limits" || l.Rate != 7 {
			t.Errorf("%s has %+v", path, l)
		}
		stop()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMigrationIsDoneOnce(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx := testenv.Context(t)
	create := func(path string) aMigration {
		return func(op builders.TransactionOp) []builders.TransactionOperation {
			return []builders.TransactionOperation{op.Create().ForPath(path, []byte{})}
		}
	}
	for _, migrations := range [][]aMigration{{create("/one")}, {create("/one"), create("/two")}} {
		if err := migrate(ctx, client, migrations...); err != nil {
			t.Fatal(err)
		}
	}
	if !server.Exists("/one") || !server.Exists("/two") {
		t.Error("a migration is not done")
	}
}
