package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// dns is a name server that a test changes.
type dns struct {
	mu    sync.Mutex
	hosts []string
	srv   []*net.SRV
	err   error
	mute  bool
	names []string
}

func (d *dns) set(change func(d *dns)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *dns) take(ctx context.Context, name string) error {
	d.mu.Lock()
	d.names = append(d.names, name)
	mute, err := d.mute, d.err
	d.mu.Unlock()
	if mute {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (d *dns) LookupHost(ctx context.Context, host string) ([]string, error) {
	err := d.take(ctx, host)
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.hosts...), err
}

func (d *dns) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	err := d.take(ctx, service+proto+name)
	d.mu.Lock()
	defer d.mu.Unlock()
	return name, append([]*net.SRV(nil), d.srv...), err
}

func TestDNSEnsembleFollowsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{err: errors.New("no such host")}
		e := framework.DNSEnsemble("zk-headless.ns.svc:2181/app",
			framework.WithDNSResolver(d), framework.WithDNSTimeout(time.Second))
		must(t, e.Start())
		wantErr(t, "another Start", e.Start(), framework.ErrStarted)
		changed := e.(framework.ServerNotifier).ServersChanged()
		check := func(want string) {
			t.Helper()
			if got := e.ConnectionString(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		quiet := func() {
			t.Helper()
			<-time.After(2 * time.Minute)
			select {
			case <-changed:
				t.Error("got a change")
			default:
			}
		}
		quiet()
		check("")
		d.set(func(d *dns) { d.err, d.hosts = nil, []string{"10.0.0.2", "10.0.0.1", "fd00::1", "10.0.0.2"} })
		<-changed
		const all = "10.0.0.1:2181,10.0.0.2:2181,[fd00::1]:2181/app"
		check(all)
		d.set(func(d *dns) { d.hosts = []string{"fd00::1", "10.0.0.1", "10.0.0.2"} }) // another order
		quiet()
		d.set(func(d *dns) { d.err = errors.New("server failure"); d.hosts = d.hosts[:1] })
		quiet()
		check(all)
		if err := e.(interface{ LastError() error }).LastError(); err == nil {
			t.Error("no error")
		}
		d.set(func(d *dns) { d.err, d.hosts = nil, nil })
		quiet()
		d.set(func(d *dns) { d.mute = true })
		quiet()
		e.SetConnectionString("h:1")
		check(all)
		d.set(func(d *dns) { d.mute, d.hosts = false, []string{"10.0.0.9"} })
		<-changed
		check("10.0.0.9:2181/app")
		must(t, e.Close())
		must(t, e.Close())
	})
}

func TestSRVEnsembleHasHostsAndPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{
			srv: []*net.SRV{{Target: "zk2.example.", Port: 2182}, {Target: "zk1.example.", Port: 2181}, {Target: ".", Port: 1}},
			err: errors.New("some names are bad"),
		}
		e := framework.SRVEnsemble("_zookeeper._tcp.example/app", framework.WithDNSResolver(d))
		must(t, e.Start())
		<-e.(framework.ServerNotifier).ServersChanged()
		if got := e.ConnectionString(); got != "zk1.example:2181,zk2.example:2182/app" {
			t.Errorf("servers %q", got)
		}
		if d.names[0] != "_zookeeper._tcp.example" {
			t.Errorf("looked up %q", d.names)
		}
		must(t, e.Close())
	})
}

func TestDNSEnsembleInvalidArgumentsFail(t *testing.T) {
	for _, e := range []framework.EnsembleProvider{
		framework.DNSEnsemble(""), framework.DNSEnsemble("a:b"), framework.SRVEnsemble(""), framework.SRVEnsemble("a b"),
		framework.SRVEnsemble("a//b"), framework.SRVEnsemble("a:1"),
		framework.SRVEnsemble("a", framework.WithDNSInterval(0)), framework.SRVEnsemble("a", framework.WithDNSTimeout(-1)),
		framework.SRVEnsemble("a", framework.WithDNSResolver(nil)),
	} {
		_, err := framework.New("", framework.WithEnsembleProvider(e))
		wantErr(t, "New", err, framework.ErrBadArguments)
	}
}

// A client starts before DNS has an answer, and moves with its session when the servers change.
func TestDNSEnsembleChangeMovesClient(t *testing.T) {
	t.Parallel()
	first, connect := newProxy(t)
	second := proxyTo(t, testenv.Addr(t))
	d := &dns{err: errors.New("server failure")}
	e := framework.SRVEnsemble("_zookeeper._tcp.example"+chrootOf(connect), framework.WithDNSResolver(d),
		framework.WithDNSInterval(50*time.Millisecond))
	client := newClient(t, "", framework.WithEnsembleProvider(e))
	recorded := record(client)
	start(t, client)
	d.set(func(d *dns) { d.err, d.srv = nil, []*net.SRV{srvRecord(t, first.Addr())} })
	recorded.want(t, connected)
	session := client.SessionID()
	d.set(func(d *dns) { d.srv = []*net.SRV{srvRecord(t, second.Addr())} })
	recorded.want(t, suspended, reconnected)
	if client.SessionID() != session {
		t.Error("another session")
	}
	// The connection that asked whether the new server serves may not have been seen to end yet.
	testenv.Eventually(t, func() bool { return second.Faults().Connections() == 1 }, "one connection to the new server")
	create(t, client, "/a", "")
	recorded.end(t, client)
}

// srvRecord is the SRV record of an address.
func srvRecord(tb testing.TB, addr string) *net.SRV {
	tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		tb.Fatal(err)
	}
	return &net.SRV{Target: host, Port: uint16(n)}
}

func ExampleSRVEnsemble() {
	servers := framework.SRVEnsemble("_zookeeper._tcp.example.com/app")
	client, err := framework.New("", framework.WithEnsembleProvider(servers))
	fmt.Println(client.State(), err)
	// Output: LATENT <nil>
}

// The form of ZooKeeper 3.10.
func TestConnectStringOfSRVRecords(t *testing.T) {
	t.Parallel()
	host, port, err := net.SplitHostPort(testenv.Addr(t))
	must(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	must(t, err)
	chroot := testenv.Chroot(t)
	d := &dns{srv: []*net.SRV{{Target: "zk1.example.", Port: uint16(number)}}, hosts: []string{host}}
	client := connectClient(t, "dns-srv://_zookeeper._tcp.example"+chroot, framework.WithResolver(d))
	_, err = client.Create().ForPath(testenv.Context(t), "/a", nil)
	must(t, err)
	if got := client.Health().Server; !strings.HasPrefix(got, "zk1.example:") {
		t.Errorf("connected to %s", got)
	}
	for _, bad := range []string{
		"dns-srv://", "dns-srv://a b", "dns-srv:///app", "dns-srv://h1:2181,h2:2181",
		"srv://h1",
	} {
		_, err := framework.New(bad)
		wantErr(t, bad, err, framework.ErrBadArguments)
	}
}
