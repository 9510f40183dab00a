package main

import (
	"context"
	"errors"
	"sync"

	"github.com/gocurator/curator/curatortest"
)

// cutter is a proxy that cuts each connection after some requests.
type cutter struct {
	proxy  *curatortest.Proxy
	cancel context.CancelFunc
	wg     sync.WaitGroup
	err    error
}

// requestsToCut is the number of requests before a cut. They take some tenths of a second: a client may pause before it
// replaces a connection that ends at once.
const requestsToCut = 1000

func startCutter(server string) (*cutter, error) {
	p, err := curatortest.NewProxy(server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &cutter{proxy: p, cancel: cancel}
	c.wg.Go(func() { c.err = c.cut(ctx) })
	return c, nil
}

func (c *cutter) addr() string { return c.proxy.Addr() }

// cut cuts one connection after the other until ctx ends. Only requests of the measured operation count: a client that
// begins asks for exists.
func (c *cutter) cut(ctx context.Context) error {
	for {
		in := c.proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Skip: requestsToCut, Count: 1, Action: curatortest.CutBefore,
			MayMiss: true, // the last one
		})
		err := in.Wait(ctx)
		in.Remove()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *cutter) close() error {
	c.cancel()
	c.wg.Wait()
	return errors.Join(c.err, c.proxy.Close())
}
