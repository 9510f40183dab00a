package main

import (
	"context"

	"github.com/gocurator/curator/framework"
)

// operator changes settings.
type operator struct{ client *framework.Client }

// write sets the limit of a service, and makes its node if there is none.
func (o operator) write(ctx context.Context, service, limit string) error {
	_, err := o.client.Create().OrSetData().CreatingParentsIfNeeded().
		ForPath(ctx, limitsPath+"/"+service, []byte(limit))
	return err
}
