package hook

import "context"

// OutOfFence returns a context whose operations a fenced client sends without its fence. It is for a recipe that clears
// away nodes of its own: nobody else would, as long as the session lasts. Package builders sets it.
var OutOfFence func(ctx context.Context) context.Context
