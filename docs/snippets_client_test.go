package docs_test

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

var _ = []any{aSecureClient, namespaceNode, rawHandle, deleteChildren, writePlan, ensurePath, traced}

func aSecureClient() error {
	client, err := framework.New("zk1:2281,zk2:2281",
		framework.WithRetryPolicy(retry.OneTime(time.Second)),
		framework.WithTLSFromFiles("client.pem", "client.key", "trust.pem"),
		framework.WithMaxBuffer(4<<20),
		framework.WithMaxReply(4<<20))
	use(client)
	return err
}

func namespaceNode(ctx context.Context, app *framework.Client) error {
	root := app.UsingNamespace("")
	own := "/" + app.Namespace()
	stat, err := root.CheckExists().ForPath(ctx, own)
	if err != nil {
		return err
	}
	if stat != nil {
		err = root.Delete().
			DeletingChildrenIfNeeded().
			ForPath(ctx, own)
	}
	return err
}

func rawHandle(ctx context.Context, client *framework.Client) error {
	session := client.SessionID() // 0 before the first
	err := client.UsingNamespace("").Delete().
		DeletingChildrenIfNeeded().
		ForPath(ctx, "/tree")
	use(session)
	return err
}

func deleteChildren(ctx context.Context, client *framework.Client) error {
	root := client.UsingNamespace("")
	names, err := root.GetChildren().ForPath(ctx, "/tree")
	if err != nil {
		return err
	}
	for _, name := range names {
		err := root.Delete().DeletingChildrenIfNeeded().
			Quietly().ForPath(ctx, zkpath.Join("/tree", name))
		if err != nil {
			return err
		}
	}
	return nil
}

func mkdirs(ctx context.Context, client *framework.Client) error {
	_, err := client.Create().CreatingParentsIfNeeded().
		ForPath(ctx, "/app/jobs", []byte{})
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	return nil
}

func mkdirsOfParents(ctx context.Context, client *framework.Client) error {
	_, err := client.CheckExists().
		CreatingParentsIfNeeded().
		ForPath(ctx, "/app/jobs/7")
	return err
}

func writePlan(
	ctx context.Context, client *framework.Client, version int32, plan []byte, readAgain func(ctx context.Context) error,
) error {
	_, err := client.SetData().WithVersion(version).ForPath(ctx, "/plan", plan)
	switch {
	case framework.MayHaveTakenEffect(err):
		return readAgain(ctx)
	case err != nil:
		return err // nothing was written
	}
	return nil
}

func ensurePath(ctx context.Context, client *framework.Client) error {
	err := client.EnsurePath(ctx, "/app/jobs")
	return err
}

func mkdirsOfContainers(ctx context.Context, client *framework.Client) error {
	err := client.CreateContainers(ctx, "/app/jobs")
	return err
}

func traced(servers string, tracers trace.TracerProvider, meters metric.MeterProvider) error {
	client, err := framework.New(servers,
		framework.WithTracerProvider(tracers),                // in place of otel.GetTracerProvider()
		framework.WithMeterProvider(meters),                  // in place of otel.GetMeterProvider()
		framework.WithPropagator(propagation.TraceContext{}), // one trace across a queue: see below
	)
	use(client)
	return err
}
