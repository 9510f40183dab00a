package framework

import (
	"context"
	"net"
)

// Resolver looks up names: *net.Resolver is one.
type Resolver interface {
	// LookupHost returns the addresses of a host.
	LookupHost(ctx context.Context, host string) ([]string, error)
	// LookupSRV returns the hosts and ports of a service, of name itself if service and proto are empty.
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

var _ Resolver = (*net.Resolver)(nil)
