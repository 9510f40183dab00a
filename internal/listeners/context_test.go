package listeners_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/listeners"
)

func TestUntilHasValuesOfOneAndEndOfTheOther(t *testing.T) {
	type key struct{}
	values, endOfValues := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Hour)
	life, end := context.WithCancelCause(t.Context())
	ctx := listeners.Until(life, values)
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	if v := child.Value(key{}); v != "value" {
		t.Errorf("the value is %v", v)
	}
	if _, bounded := ctx.Deadline(); bounded {
		t.Error("the deadline of the values bounds the context")
	}
	endOfValues()
	if child.Err() != nil || context.Cause(ctx) != nil {
		t.Errorf("ended with the values: %v, %v", child.Err(), context.Cause(ctx))
	}
	closed := errors.New("closed")
	end(closed)
	for name, ctx := range map[string]context.Context{"context": ctx, "child": child} {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), closed) {
			t.Errorf("%s: error %v, cause %v", name, ctx.Err(), context.Cause(ctx))
		}
	}
}
