package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/usercode"
)

func init() {
	hook.TelemetryOption = func(change func(*telemetry.Config)) any {
		return option(func(c *config) { change(&c.telemetry) })
	}
	hook.Attached = func(client any, create func() (any, func() <-chan struct{})) any {
		return client.(*Client).core.attached.value(create)
	}
	hook.StateListeners = func(client any) int { return client.(*Client).core.states.count() }
	hook.ForLibrary = func(client any) any {
		c := client.(*Client)
		if c == nil {
			return c // constructors of recipes check their path before their client
		}
		view := c.with(c.operations.ForLibrary())
		view.library = true
		return view
	}
	hook.Dispatch = func(client any, what string, fn func()) {
		k := client.(*Client).core
		k.dispatch(dispatch.Func(func() { k.guard(exec.Root, what, fn) }))
	}
	hook.Closing = func(client any) context.Context { return client.(*Client).core.closing }
	hook.EndOf = func(ctx context.Context, client any) error { return client.(*Client).endOf(ctx) }
	hook.WallClock = func(now func() time.Time) any { return withWallClock(now) }
	hook.Jitter = func(of func(most time.Duration) time.Duration) any { return withJitter(of) }
	hook.Telemetry = func(client any) *telemetry.Telemetry {
		if c := client.(*Client); c != nil {
			return c.core.telemetry
		}
		return nil // constructors of recipes check their path before their client
	}
	hook.PipelinedNow = func(ctx context.Context, client any) (context.Context, int64) {
		flight, session := client.(*Client).core.connection.flight()
		return exec.WithFlight(ctx, flight), session
	}
	hook.AwaitConnection = func(ctx context.Context, client any) error {
		return client.(*Client).awaitConnection(ctx, true)
	}
	hook.BeforeSession = func(fn func(client any)) any { return withBeforeSession(fn) }
	hook.Decompress = func(client any, path string, data []byte, always bool) (plain []byte, err error) {
		cfg := client.(*Client).core.cfg
		if !always && !cfg.compressAll {
			return data, nil
		}
		defer usercode.Catch(fmt.Sprintf("the compression %T", cfg.compression), &err)
		return cfg.compression.Decompress(path, data)
	}
	hook.HasChroot = func(client any) bool { return client.(*Client).core.connection.chroot() != "" }
	hook.HasProviders = func(client any) bool {
		cfg := client.(*Client).core.cfg
		_, isFixed := cfg.acl.(builders.FixedACL)
		_, isGzip := cfg.compression.(builders.GzipCompression)
		return !isFixed || cfg.compressAll && !isGzip
	}
	hook.EnsureNamespace = func(client any) error { return client.(*Client).operations.EnsureNamespace() }
	hook.FencedBy = func(client any, holding context.Context, fence any) any {
		c := client.(*Client)
		return c.with(c.operations.FencedBy(holding, fence.(builders.TransactionOperation)))
	}
}

// withWallClock sets the wall clock, which shows suspensions of the machine.
func withWallClock(now func() time.Time) Option { return option(func(c *config) { c.wall = now }) }

// withJitter sets the random part of the pauses between attempts to connect.
func withJitter(of func(most time.Duration) time.Duration) Option {
	return option(func(c *config) { c.jitter = of })
}

// withBeforeSession calls fn before Session returns.
func withBeforeSession(fn func(client any)) Option {
	return option(func(c *config) { c.beforeSession = fn })
}
