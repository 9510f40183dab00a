package kerberos

import (
	"testing"
)

// TestServicePrincipal has the rule of SaslServerPrincipal and SecurityUtils of ZooKeeper, and the realms of krb5.conf.
func TestServicePrincipal(t *testing.T) {
	t.Parallel()
	dns := names{
		"zk": "10.0.0.1", "zk.example.test": "10.0.0.1", "10.0.0.1": "10.0.0.1", "reverse 10.0.0.1": "zk.example.test.",
		"www": "10.0.0.2", "reverse 10.0.0.2": "elsewhere.test.", // which does not lead back
		"bare": "10.0.0.3", "10.0.0.3": "10.0.0.3", // has no name
		"odd": "10.0.0.4", "reverse 10.0.0.4": "10.0.0.4.", "10.0.0.4": "10.0.0.4",
		"BIG": "10.0.0.5", "reverse 10.0.0.5": "Big.Example.Test", "Big.Example.Test": "10.0.0.5",
	}
	for _, tt := range []struct {
		host string
		opts []Option
		want string
	}{
		{"zk", nil, "zookeeper/zk.example.test@EXAMPLE.TEST"},
		{"10.0.0.1", nil, "zookeeper/zk.example.test@EXAMPLE.TEST"},
		{"zk.example.test.", nil, "zookeeper/zk.example.test@EXAMPLE.TEST"},
		{"www", nil, "zookeeper/www@CLIENT.TEST"},
		{"bare", nil, "zookeeper/bare@CLIENT.TEST"},
		{"10.0.0.3", nil, "zookeeper/10.0.0.3@CLIENT.TEST"},
		{"odd", nil, "zookeeper/odd@CLIENT.TEST"},
		{"unknown", nil, "zookeeper/unknown@CLIENT.TEST"},
		{"BIG", nil, "zookeeper/big.example.test@EXAMPLE.TEST"},
		{"zk", []Option{WithoutCanonicalHost()}, "zookeeper/zk@CLIENT.TEST"},
		{"ZK.Example.Test.", []Option{WithoutCanonicalHost()}, "zookeeper/zk.example.test@EXAMPLE.TEST"},
		{"10.0.0.1", []Option{WithoutCanonicalHost()}, "zookeeper/10.0.0.1@CLIENT.TEST"},
		{"zk", []Option{WithServiceName("hdfs")}, "hdfs/zk.example.test@EXAMPLE.TEST"},
		{"zk", []Option{WithServiceRealm("OTHER.TEST")}, "zookeeper/zk.example.test@OTHER.TEST"},
		{"zk", []Option{WithServicePrincipal("a/b")}, "a/b@CLIENT.TEST"},
		{"zk", []Option{WithServicePrincipal("a/B@C")}, "a/B@C"},
		{"zk", []Option{WithServicePrincipal("a/b"), WithServiceRealm("OTHER.TEST")}, "a/b@OTHER.TEST"},
	} {
		s, err := newSettings(tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		s.resolver = dns
		conf := &config{realms: map[string]string{".example.test": "EXAMPLE.TEST"}}
		host := s.serviceHost(t.Context(), tt.host)
		if got := s.servicePrincipal(conf, host, "CLIENT.TEST"); got.String() != tt.want {
			t.Errorf("%s: %s, want %s", tt.host, got, tt.want)
		}
	}
}

func TestPrincipals(t *testing.T) {
	t.Parallel()
	for text, parts := range map[string]int{
		"alice": 1, "alice@B": 1, "a/b": 2, "a/b@C": 2, "a/b/c@D": 3,
		"": 0, "@B": 0, "a@": 0, "/": 0, "a/": 0, "/b": 0, "a@b@C": 0, "a b": 0, "a//b": 0,
	} {
		p, err := parsePrincipal(text)
		if len(p.parts) != parts || (err == nil) != (parts > 0) || err == nil && p.String() != text {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}
