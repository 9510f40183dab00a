package listeners

import "context"

// Until returns the context of a listener: it has the values of ctx and ends with life, whatever ends ctx. life has no
// values of its own.
func Until(life, ctx context.Context) context.Context {
	return lifeContext{Context: life, values: context.WithoutCancel(ctx)}
}

type lifeContext struct {
	context.Context
	values context.Context
}

// Value leaves to life what values does not have: package context finds there the cause, and the parent of a child.
func (c lifeContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}
