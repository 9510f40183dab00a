package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gocurator/curator/framework"
)

// operate changes the settings, the next time when the service has shown the last ones.
func operate(ctx context.Context, client *framework.Client, shown <-chan struct{}) error {
	for _, settings := range []string{
		`{"Greeting": "hello", "Rate": 10}`,
		`{"Greeting": "hello", "Rate": 20}`,
		`{"Greeting": "hello", "Rate": "many"}`,
		`{"Greeting": "good day", "Rate": 20}`,
	} {
		select {
		case <-shown:
		case <-ctx.Done():
			return fmt.Errorf("operator: %w", context.Cause(ctx))
		}
		create := client.Create().OrSetData().CreatingParentsIfNeeded()
		if _, err := create.ForPath(ctx, settingsPath, []byte(settings)); err != nil {
			return err
		}
	}
	select {
	case <-shown:
	case <-ctx.Done():
	}
	return nil
}

// announced announces each line about valid settings, or about none, until ctx ends.
type announced struct {
	io.Writer
	ctx   context.Context //nolint:containedctx // of the program
	shown chan<- struct{}
}

func (a announced) Write(p []byte) (int, error) {
	n, err := a.Writer.Write(p)
	if !strings.HasPrefix(string(p), "invalid") {
		select {
		case a.shown <- struct{}{}:
		case <-a.ctx.Done():
		}
	}
	return n, err
}
