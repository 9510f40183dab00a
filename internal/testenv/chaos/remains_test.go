package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestRemains(t *testing.T) {
	ctx := testenv.Context(t)
	server := testenv.NewServer(t)
	s, client := chaos.New(t), testclient.Connect(t, server.ConnectString())
	s.AwaitRemains(ctx, server, chaos.Remains{Connections: 1}, "recipes/...")
	node, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/n", nil)
	if err != nil {
		t.Fatal(err)
	}
	watcher := callbacks.NewChanWatcher(make(chan zk.Event, 1))
	if _, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, node); err != nil {
		t.Fatal(err)
	}
	s.AwaitRemains(ctx, server, chaos.Remains{Nodes: 1, Watches: 1, Connections: 1}, "recipes/...")
	go func() { // it is waited for
		if err := client.Delete().ForPath(ctx, node); err != nil {
			t.Error(err)
		}
	}()
	s.AwaitRemains(ctx, server, chaos.Remains{Connections: 1}, "recipes/...")
}

func TestRunning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d := &chaos.Disturbance{Context: ctx}
		d.Wait(time.Hour)
	}()
	testenv.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(chaos.Running("internal/testenv/chaos", "recipes/...")), "Disturbance")
	}, "it runs")
	if found := chaos.Running("recipes/..."); len(found) != 0 {
		t.Errorf("found %q", found)
	}
	if found := chaos.Running("internal/testenv/..."); len(found) < 2 {
		t.Errorf("found only %q", found)
	}
	cancel()
	<-done
}
