package discovery_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func BenchmarkPickOf1000(b *testing.B) {
	server := curatortest.NewServerT(b)
	client := testclient.Connect(b, server.ConnectString())
	d := discovery.New[string](client, base)
	testclient.Must(b, d.Start())
	defer d.Close(context.WithoutCancel(b.Context())) //nolint:errcheck // the server ends next
	ended, cancel := context.WithCancel(b.Context())
	cancel()
	for n := range 1000 {
		_ = d.Register(ended, orders(strconv.Itoa(n), "eu")) // it comes behind
	}
	for name, strategy := range map[string]discovery.Strategy[string]{
		"round robin": discovery.RoundRobin[string](), "random": discovery.Random[string](),
		"fewest in flight": discovery.FewestInFlight[string](),
		"weighted":         discovery.Weighted(func(order) float64 { return 1 }),
		"sticky":           discovery.Sticky(discovery.RoundRobin[string]()),
	} {
		p := d.Provider("orders", discovery.WithStrategy(strategy))
		testclient.Must(b, p.Start(b.Context()))
		for len(p.AllInstances()) < 1000 {
			<-time.After(time.Millisecond)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pick, err := p.Pick(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				pick.Done(nil)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	const data = `{"name":"orders","id":"i-7","address":"10.0.0.7","port":8080,"sslPort":null,"payload":"eu",` +
		`"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}`
	s := serializer[string](b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decode([]byte(data)); err != nil {
			b.Fatal(err)
		}
	}
}
