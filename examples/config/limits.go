package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

const limitsPath = "/examples/config/limits"

// Limit is one setting: what a service may ask of another.
type Limit struct {
	Rate    int
	Timeout time.Duration
}

// decodeLimit decodes and checks the data of a node.
func decodeLimit(_ string, data []byte) (Limit, error) {
	var raw struct {
		Rate    int    `json:"rate"`
		Timeout string `json:"timeout"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return Limit{}, err
	}
	timeout, err := time.ParseDuration(raw.Timeout)
	if err != nil {
		return Limit{}, err
	}
	if raw.Rate <= 0 || timeout <= 0 {
		return Limit{}, errors.New("rate and timeout have to be positive")
	}
	return Limit{Rate: raw.Rate, Timeout: timeout}, nil
}

// limits has the limit of each service. It keeps the last valid one that was used.
type limits struct {
	cache *cache.CuratorCache
	typed *cache.Typed[Limit]

	mu   sync.Mutex
	used map[string]Limit // by path
}

// followLimits returns the limits, when all are read.
func followLimits(ctx context.Context, client *framework.Client) (*limits, error) {
	l := &limits{
		cache: cache.NewCuratorCache(client, limitsPath, cache.WithMaxDepth(1), cache.WithReconnectJitter(time.Second)),
		used:  make(map[string]Limit),
	}
	l.typed = cache.NewTyped(l.cache, decodeLimit)
	if err := l.cache.Start(); err != nil {
		return nil, err
	}
	if err := l.cache.Ready(ctx); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// of returns the limit of a service: the newest if it is valid, else the last one that of has returned, with the reason.
func (l *limits) of(service string) (Limit, error) {
	path := limitsPath + "/" + service
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit, ok := l.typed.Get(path); ok {
		l.used[path] = limit
		return limit, nil
	}
	err := l.typed.Err(path)
	if err == nil {
		err = fmt.Errorf("%s is not set", path)
	}
	return l.used[path], err
}

// sync returns when everything that was written before is here.
func (l *limits) sync(ctx context.Context) error { return l.cache.Sync(ctx) }

func (l *limits) close() error { return l.cache.Close() }
