package framework

import (
	"fmt"
	"sync"
	"testing"
)

func TestConfigToConnectString(t *testing.T) {
	tests := []struct {
		name   string
		config string
		chroot string
		want   string
	}{
		{name: "empty"},
		{name: "version only", config: "version=0"},
		{name: "nothing and a chroot", config: "version=0", chroot: "/a"},
		{
			name: "an ensemble",
			config: "server.1=zoo1:2888:3888:participant;zoo1:2181\n" +
				"server.2=zoo2:2888:3888:participant;zoo2:2181\n" +
				"server.3=zoo3:2888:3888:observer;zoo3:2182\nversion=100000003",
			want: "zoo1:2181,zoo2:2181,zoo3:2182",
		},
		{
			name: "chroot",
			config: "server.1=zoo1:2888:3888:participant;2181\nserver.2=zoo2:2888:3888:participant;2181\n" +
				"version=100000003\n",
			chroot: "/app/a",
			want:   "zoo1:2181,zoo2:2181/app/a",
		},
		{
			name: "sorted by server, not by number or client address",
			config: "server.1=zoo3:2888:3888:participant;a:2181\n" +
				"server.2=zoo1:2888:3888:participant;c:2181\n" +
				"server.3=zoo2:2888:3888:participant;b:2181\nversion=1",
			want: "c:2181,b:2181,a:2181",
		},
		{
			name: "sorted as text",
			config: "server.1=zoo2:2888:3888:participant;2181\nserver.2=zoo10:2888:3888:participant;2181\n" +
				"server.3=zoo1:2888:3888:participant;2181",
			want: "zoo10:2181,zoo1:2181,zoo2:2181", // a digit is less than a colon
		},
		{
			name: "same host, sorted by quorum port",
			config: "server.1=localhost:2890:3888:participant;2183\n" +
				"server.2=localhost:2889:3889:participant;2182\n" +
				"server.3=localhost:2888:3890:participant;2181",
			want: "localhost:2181,localhost:2182,localhost:2183",
		},
		{
			name: "observers before participants of the same ports",
			config: "server.1=zoo1:2888:3888:participant;a:2181\n" +
				"server.2=zoo1:2888:3888:observer;b:2181",
			want: "b:2181,a:2181",
		},
		{
			name:   "IPv4",
			config: "server.1=10.1.2.3:2888:3888:participant;10.2.3.4:2181",
			want:   "10.2.3.4:2181",
		},
		{
			name: "IPv6",
			config: "server.1=[1010:0001:0002:0003:0004:0005:0006:0007]:2888:3888:participant;" +
				"[2001:db8:85a3:0:0:8a2e:370:7334]:2181",
			want: "[2001:db8:85a3:0:0:8a2e:370:7334]:2181",
		},
		{
			name:   "IPv4, port only",
			config: "server.1=10.1.2.3:2888:3888:participant;2181",
			want:   "10.1.2.3:2181",
		},
		{
			name:   "IPv6, port only",
			config: "server.1=[2001:db8::1]:2888:3888:participant;2181",
			want:   "[2001:db8::1]:2181",
		},
		{
			name:   "IPv4 wildcard",
			config: "server.1=10.1.2.3:2888:3888:participant;0.0.0.0:2181",
			want:   "10.1.2.3:2181",
		},
		{
			name:   "IPv6 wildcard",
			config: "server.1=[2001:db8:85a3:0:0:8a2e:370:7334]:2888:3888:participant;[::]:2181",
			want:   "[2001:db8:85a3:0:0:8a2e:370:7334]:2181",
		},
		{
			name:   "IPv6 wildcard with a zero, address as written",
			config: "server.1=[1010:0001:0002:0003:0004:0005:0006:0007]:2888:3888:participant;[::0]:2181",
			want:   "[1010:0001:0002:0003:0004:0005:0006:0007]:2181",
		},
		{
			name:   "IPv6 wildcard in full",
			config: "server.1=10.1.2.3:2888:3888:participant;[0:0:0:0:0:0:0:0]:2181",
			want:   "10.1.2.3:2181",
		},
		{
			name:   "IPv6 wildcard, IPv4 server",
			config: "server.1=10.1.2.3:2888:3888:participant;[::]:2181",
			want:   "10.1.2.3:2181",
		},
		{
			name:   "IPv4 client, IPv6 server",
			config: "server.1=[2001:db8:85a3:0:0:8a2e:370:7334]:2888:3888:participant;127.0.0.1:2181",
			want:   "127.0.0.1:2181",
		},
		{
			name:   "client name",
			config: "server.1=server.addr:2888:3888:participant;client.addr:2181",
			want:   "client.addr:2181",
		},
		{
			name:   "server name",
			config: "server.1=server.addr:2888:3888:participant;2181",
			want:   "server.addr:2181",
		},
		{
			name:   "server name, IPv4 wildcard",
			config: "server.1=server.addr:2888:3888:participant;0.0.0.0:2181",
			want:   "server.addr:2181",
		},
		{
			name:   "server name, IPv6 wildcard",
			config: "server.1=server.addr:2888:3888:participant;[::]:2181",
			want:   "server.addr:2181",
		},
		{name: "no client port", config: "server.1=10.1.2.3:2888:3888:participant"},
		{
			name:   "no client port and a chroot",
			config: "server.1=10.1.2.3:2888:3888:participant",
			chroot: "/a",
		},
		{
			name:   "one without a client port",
			config: "server.1=zoo1:2888:3888:participant\nserver.2=zoo2:2888:3888:participant;2181",
			want:   "zoo2:2181",
		},
		{
			name: "wildcards only",
			config: "server.1=0.0.0.0:2888:3888:participant;0.0.0.0:2181\n" +
				"server.2=[::]:2889:3889:participant;2182",
		},
		{
			name: "a wildcard server",
			config: "server.1=0.0.0.0:2888:3888:participant;2181\n" +
				"server.2=zoo2:2888:3888:participant;0.0.0.0:2181",
			want: "zoo2:2181",
		},
		{
			name:   "a wildcard server with a client address",
			config: "server.1=0.0.0.0:2888:3888:participant;zoo1:2181",
			want:   "zoo1:2181",
		},
		{name: "no role", config: "server.1=zoo1:2888:3888;2181", want: "zoo1:2181"},
		{name: "role in capitals", config: "server.1=zoo1:2888:3888:OBSERVER;2181", want: "zoo1:2181"},
		{
			name:   "several addresses of a server",
			config: "server.1=zoo1-a:2888:3888|zoo1-b:2889:3889:participant;0.0.0.0:2181\nversion=0",
			want:   "zoo1-a:2181",
		},
		{
			name:   "several IPv6 addresses of a server",
			config: "server.1=[2001:db8::1]:2888:3888|[2001:db8::2]:2888:3888:observer;2181",
			want:   "[2001:db8::1]:2181",
		},
		{
			name: "other lines",
			config: "# a comment\r\n\r\ngroup.1=1:2\r\n" +
				"weight.1=1\r\n" +
				" server.1 = zoo1:2888:3888:participant;2181 \r\n" +
				"version=0\r\n",
			want: "zoo1:2181",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := configToConnectString([]byte(tt.config), tt.chroot)
			if err != nil || got != tt.want {
				t.Fatalf("configToConnectString = %q, %v, want %q", got, err, tt.want)
			}
			if got == "" {
				return
			}
			if c, err := parseConnectString(got); err != nil || c.String() != got {
				t.Errorf("parseConnectString(%q) = %v, %v", got, c, err)
			}
		})
	}
}

func TestConfigToConnectStringInvalid(t *testing.T) {
	for _, value := range []string{
		"",
		";2181",
		"zoo1",
		"zoo1:2888",
		"zoo1:2888:participant;2181",
		"zoo1:2888:3888:3889:participant;2181",
		":2888:3888:participant;2181",
		"zoo1:2888:-1:participant;2181",
		"zoo1:a:3888:participant;2181",
		"zoo1:2888:3888:leader;2181",
		"zoo 1:2888:3888:participant;2181",
		"[zoo1]:2888:3888:participant;2181",
		"[::1:2888:3888:participant;2181",
		"2001:db8::1:2888:3888:participant;2181",
		"zoo1:2888:3888|zoo2:2888:participant;2181",
		"zoo1:2888:3888:participant;",
		"zoo1:2888:3888:participant;zoo1",
		"zoo1:2888:3888:participant;zoo1:",
		"zoo1:2888:3888:participant;:2181",
		"zoo1:2888:3888:participant;zoo1:65536",
		"zoo1:2888:3888:participant;[::1]",
		"zoo1:2888:3888:participant;[::1]2181",
		"zoo1:2888:3888:participant;2181;2182",
	} {
		config := "server.1=good:2888:3888:participant;2181\nserver.2=" + value
		if got, err := configToConnectString([]byte(config), ""); err == nil || got != "" {
			t.Errorf("configToConnectString of %q = %q, want an error", value, got)
		}
	}
}

func FuzzConfigToConnectString(f *testing.F) {
	for _, s := range []string{
		"", "version=0", "server.1=zoo1:2888:3888:participant;2181\n" +
			"version=0", "server.1=[::1]:1:2|[::2]:1:2;[::]:3",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		got, err := configToConnectString(config, "/chroot")
		if err != nil || got == "" {
			return
		}
		if c, err := parseConnectString(got); err != nil || c.chroot != "/chroot" {
			t.Errorf("configToConnectString(%q) = %q: %v", config, got, err)
		}
	})
}

func TestFixedEnsemble(t *testing.T) {
	p := FixedEnsemble("h1:2181/a")
	if err := p.Start(); err != nil {
		t.Error(err)
	}
	if got := p.ConnectionString(); got != "h1:2181/a" || !p.UpdateServerListEnabled() {
		t.Errorf("ConnectionString() = %q, UpdateServerListEnabled() = %t", got, p.UpdateServerListEnabled())
	}
	for _, s := range []string{"h2:2181/a", ""} {
		p.SetConnectionString(s)
		if got := p.ConnectionString(); got != "h2:2181/a" {
			t.Errorf("after SetConnectionString(%q): %q", s, got)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := new(FixedEnsembleProvider).ConnectionString(); got != "" {
		t.Errorf("zero value: %q", got)
	}
}

func ExampleFixedEnsemble() {
	ensemble := FixedEnsemble("zoo1:2181,zoo2:2181/app")
	fmt.Println(ensemble.ConnectionString())
	ensemble.SetConnectionString("zoo2:2181,zoo3:2181/app") // as a client does that tracks its ensemble
	fmt.Println(ensemble.ConnectionString())
	// Output:
	// zoo1:2181,zoo2:2181/app
	// zoo2:2181,zoo3:2181/app
}

func TestFixedEnsembleConcurrent(t *testing.T) {
	p := FixedEnsemble("h1")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				p.SetConnectionString("h2")
				if got := p.ConnectionString(); got != "h2" {
					t.Errorf("ConnectionString() = %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
}
