package framework_test

import (
	"context"
	"testing"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestTelemetryBackgroundChainIsOneTrace(t *testing.T) {
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t), framework.WithTracerProvider(o.Tracers),
		framework.WithMeterProvider(o.Meters))
	ctx, request := o.Start(t.Context(), "request")
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	err := client.Create().InBackground(func(ctx context.Context, ev callbacks.Event) {
		if ctx.Err() != nil {
			done <- ctx.Err()
			return
		}
		_ = client.SetData().InBackground(func(ctx context.Context, ev callbacks.Event) {
			_ = client.GetData().InBackground(func(_ context.Context, ev callbacks.Event) { done <- ev.Err }).ForPath(ctx, "/a")
		}).ForPath(ctx, "/a", []byte("2"))
	}).ForPath(ctx, "/a", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	request.End()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantTree(t, o, `
request
  create CLIENT
    setData CLIENT
      getData CLIENT
`)
}
