package main

import (
	"context"
	"fmt"
)

// deletesAtOnce is the number of deletes in one transaction.
const deletesAtOnce = 500

// scratch is the node of one run, with a series of paths below it for each goroutine.
type scratch struct {
	client client
	parent string
	series []*names
}

func newScratch(c client, parent string, series int) *scratch {
	s := &scratch{client: c, parent: parent, series: make([]*names, series)}
	for i := range s.series {
		s.series[i] = newNames(fmt.Sprintf("%s/%d-", parent, i))
	}
	return s
}

// remove deletes the node and all nodes whose paths were used.
func (s *scratch) remove(ctx context.Context) error {
	batch := make([]string, 0, deletesAtOnce)
	for _, n := range s.series {
		err := n.again(func(path string) error {
			if batch = append(batch, path); len(batch) < deletesAtOnce {
				return nil
			}
			err := s.client.deleteAll(ctx, batch)
			batch = batch[:0]
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.client.deleteAll(ctx, append(batch, s.parent))
}
