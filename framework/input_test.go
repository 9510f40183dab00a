package framework_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// What comes over from Java, or from the configuration of a server, and does not mean the same here.
func TestNewArgumentsOfJavaFail(t *testing.T) {
	const good = "h1:2181"
	const units = "durations are in Go's units"
	type options = []framework.Option
	tests := []struct {
		name    string
		connect string
		opts    options
		says    []string
	}{
		{
			"milliseconds of a retry policy", good,
			options{framework.WithRetryPolicy(retry.ExponentialBackoff(1000, 3))},
			[]string{"ExponentialBackoff: base sleep 1µs", units, "1000*time.Millisecond"},
		},
		{
			"milliseconds of a wrapped retry policy", good,
			options{framework.WithRetryPolicy(retry.SessionFailed(retry.NTimes(3, 100)))},
			[]string{"NTimes: sleep 100ns", units, "100*time.Millisecond"},
		},
		{
			"milliseconds of a circuit breaker", good,
			options{framework.WithCircuitBreaker(retry.Forever(500))},
			[]string{"Forever: sleep 500ns", units, "500*time.Millisecond"},
		},
		{
			"milliseconds of a session timeout", good,
			options{framework.WithSessionTimeout(60_000)},
			[]string{"session timeout 60µs", units, "60000*time.Millisecond"},
		},
		{
			"milliseconds of a connection timeout", good,
			options{framework.WithConnectionTimeout(15_000)},
			[]string{"connection timeout 15µs", units, "15000*time.Millisecond"},
		},
		{
			"milliseconds of a wait for close", good,
			options{framework.WithMaxCloseWait(1000)},
			[]string{"maximum wait for close 1µs", units, "1000*time.Millisecond"},
		},
		{"semicolons", "zk1:2181;zk2:2181", nil, []string{"servers are separated by commas"}},
		{"semicolons without ports", "zk1;zk2", nil, []string{"servers are separated by commas"}},
		{"a blank", "zk1:2181 zk2:2181", nil, []string{"servers are separated by commas"}},
		{"a line break", "zk1:2181\nzk2:2181", nil, []string{"servers are separated by commas"}},
		{"semicolons and a chroot", "zk1:2181;zk2:2181/app", nil, []string{"servers are separated by commas"}},
		{"a chroot in the middle", "h:2181,h2:2181/app,h3:2181", nil, []string{"chroot", "behind the last server"}},
		{"a chroot behind each server", "h1:2181/app,h2:2181/app", nil, []string{"chroot", "behind the last server"}},
		{"a slash behind each server", "h1:2181/,h2:2181/", nil, []string{"chroot", "behind the last server"}},
		{"a chroot behind each, no ports", "h1/app,h2/app", nil, []string{"chroot", "behind the last server"}},
		{"a scheme", "zk://h1:2181/app", nil, []string{"without a scheme", `"zk://"`}},
		{"the ports of a server's configuration", "h1:2888:3888", nil, []string{`bad port "2888:3888"`}},
		{
			"a namespace like a path", good,
			options{framework.WithNamespace("/app")},
			[]string{`namespace "/app"`, "without the slash"},
		},
		{
			"a namespace with a slash at the end", good,
			options{framework.WithNamespace("app/")},
			[]string{`namespace "app/"`, "without the slash"},
		},
		{
			"the root as a namespace", good,
			options{framework.WithNamespace("/")},
			[]string{`namespace "/"`, "without the slash"},
		},
		{
			"SASL", good,
			options{framework.WithAuth("sasl", []byte("user"))},
			[]string{`scheme "sasl"`, "WithSASL"},
		},
		{
			"SASL in capitals", good,
			options{framework.WithAuth("SASL", nil)},
			[]string{`scheme "SASL"`, "WithSASL"},
		},
		{
			"a scheme in capitals", good,
			options{framework.WithAuth("Digest", []byte("user:password"))},
			[]string{`scheme "Digest"`, `did you mean "digest"?`},
		},
		{
			"a scheme with a blank", good,
			options{framework.WithAuth("digest ", []byte("user:password"))},
			[]string{`scheme "digest "`, `did you mean "digest"?`},
		},
		{
			"a scheme of ACLs", good,
			options{framework.WithAuth("world", []byte("anyone"))},
			[]string{`scheme "world"`, "ACL"},
		},
		{
			"another scheme of ACLs", good,
			options{framework.WithAuth("auth", nil)},
			[]string{`scheme "auth"`, "ACL"},
		},
		{"digest without credentials", good, options{framework.WithAuth("digest", nil)}, []string{"user:password"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := framework.New(tt.connect, tt.opts...)
			if client != nil {
				t.Error("a client all the same")
			}
			wantErr(t, "New", err, framework.ErrBadArguments)
			for _, part := range tt.says {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want it to say %q", err, part)
				}
			}
		})
	}
}

func TestNewArgumentsOfServerSucceed(t *testing.T) {
	tests := []struct {
		name    string
		connect string
		opts    []framework.Option
	}{
		{"a slash at the end", "h1:2181,h2:2181/", nil},
		{"a chroot with a comma", "h1:2181,h2:2181/app,east", nil},
		{"a millisecond", "h1", []framework.Option{
			framework.WithSessionTimeout(time.Millisecond), framework.WithConnectionTimeout(time.Millisecond),
			framework.WithMaxCloseWait(time.Millisecond), framework.WithRetryPolicy(retry.OneTime(time.Millisecond)),
		}},
		{"no sleep", "h1", []framework.Option{framework.WithRetryPolicy(retry.ExponentialBackoff(0, 3))}},
		{"a namespace of several names", "h1", []framework.Option{framework.WithNamespace("team/app")}},
		{"a namespace with a comma", "h1", []framework.Option{framework.WithNamespace("a,b")}},
		{"digest", "h1", []framework.Option{framework.WithAuth("digest", []byte("user:password"))}},
		{"digest without a password", "h1", []framework.Option{framework.WithAuth("digest", []byte("user"))}},
		{"ip", "h1", []framework.Option{framework.WithAuth("ip", nil)}},
		{"x509", "h1", []framework.Option{framework.WithAuth("x509", nil)}},
		{"a plug-in of the server", "h1", []framework.Option{framework.WithAuth("Kerberos-Token", []byte("t"))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := framework.New(tt.connect, tt.opts...)
			if err != nil {
				t.Fatal(err)
			}
			closeClient(t, client)
		})
	}
}

func TestUsingNamespaceLikePathFails(t *testing.T) {
	client := newClient(t, nowhere)
	err := client.UsingNamespace("/app").Delete().ForPath(testenv.Context(t), "/n")
	if !errors.Is(err, zk.ErrInvalidPath) || !strings.Contains(err.Error(), "without the slash") {
		t.Errorf("error %v, want zk.ErrInvalidPath that says how to write the namespace", err)
	}
}
