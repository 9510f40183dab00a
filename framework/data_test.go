package framework_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestDefaultData(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	server, root := newTree(t), chrootOf(connect)
	ctx := testenv.Context(t)
	given := []byte("default")
	client := connectClient(t, connect, framework.WithDefaultData(given))
	given[0] = 'x' // the client has its own copy
	op := client.TransactionOp()
	_, err := client.Create().ForPath(ctx, "/nil", nil)
	must(t, err)
	_, err = client.Create().ForPath(ctx, "/empty", []byte{})
	must(t, err)
	_, err = client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/parent/child", nil)
	must(t, err)
	_, err = client.Transaction().ForOperations(ctx,
		op.Create().ForPath("/t", nil), op.Create().ForPath("/te", []byte{}))
	must(t, err)
	_, err = client.Create().ForPath(ctx, "/set", []byte("x"))
	must(t, err)
	_, err = client.SetData().ForPath(ctx, "/set", nil)
	must(t, err)
	for p, want := range map[string]string{
		"/nil": "default", "/empty": "", "/parent": "", "/parent/child": "default", "/t": "default", "/te": "",
		"/set": "default",
	} {
		if got := server.data(root + p); got != want {
			t.Errorf("%s: data %q, want %q", p, got, want)
		}
	}

	_, err = connectClient(t, connect).Create().ForPath(ctx, "/host", nil)
	must(t, err)
	if data := server.data(root + "/host"); data != "" { // unless the name of this host does not resolve
		if _, err := netip.ParseAddr(data); err != nil {
			t.Errorf("data %q, want the address of this host", data)
		}
	}
	_, err = connectClient(t, connect, framework.WithDefaultData(nil)).Create().ForPath(ctx, "/none", nil)
	must(t, err)
	if data := server.data(root + "/none"); data != "" {
		t.Errorf("data %q, want none", data)
	}
}

func TestCompressionOfAllData(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	server, root := newTree(t), chrootOf(connect)
	ctx := testenv.Context(t)
	client := connectClient(t, connect, framework.WithCompression(),
		framework.WithDefaultData([]byte("default")))
	plain := connectClient(t, connect)
	text := strings.Repeat("data ", 100)

	create(t, client, "/a", text)
	if got := gunzip(t, server.data(root+"/a")); got != text {
		t.Errorf("on the server %q", got)
	}
	if got := read(t, client, "/a"); got != text {
		t.Errorf("read %q", got)
	}
	setData(t, client, "/a", "other")
	if got := gunzip(t, server.data(root+"/a")); got != "other" {
		t.Errorf("on the server %q", got)
	}
	data, err := plain.GetData().Decompressed().ForPath(ctx, "/a")
	if err != nil || string(data) != "other" {
		t.Errorf("read by a client without compression: %q, %v", data, err)
	}
	_, err = client.Create().ForPath(ctx, "/default", nil)
	must(t, err)
	if got := gunzip(t, server.data(root+"/default")); got != "default" {
		t.Errorf("default data on the server %q", got)
	}
	op := client.TransactionOp()
	_, err = client.Transaction().ForOperations(ctx,
		op.Create().ForPath("/t", []byte(text)), op.Create().Uncompressed().ForPath("/tu", []byte(text)))
	must(t, err)
	if got := gunzip(t, server.data(root+"/t")); got != text {
		t.Errorf("of a transaction %q", got)
	}
	if got := server.data(root + "/tu"); got != text {
		t.Errorf("uncompressed of a transaction %q", got)
	}

	_, err = client.Create().Uncompressed().ForPath(ctx, "/u", []byte(text))
	must(t, err)
	if got := server.data(root + "/u"); got != text {
		t.Errorf("uncompressed %q", got)
	}
	_, err = client.GetData().ForPath(ctx, "/u")
	wantErr(t, "decompress what is not compressed", err, framework.ErrDataInconsistency)
	results := newEvents()
	must(t, client.GetData().InBackground(results.callback).ForPath(ctx, "/u"))
	if ev := receive(t, results); !errors.Is(ev.Err, framework.ErrDataInconsistency) || string(ev.Data) != text {
		t.Errorf("in background %q, %v", ev.Data, ev.Err)
	}
	data, err = client.GetData().Undecompressed().ForPath(ctx, "/u")
	if err != nil || string(data) != text {
		t.Errorf("undecompressed %q, %v", data, err)
	}
}

func gunzip(t *testing.T, data string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Errorf("%q: %v", data, err)
		return ""
	}
	out, err := io.ReadAll(r)
	must(t, err)
	return string(out)
}

// upside is a compression of its own kind: it turns the bytes around.
type upside struct{}

var errUpside = errors.New("bad data")

func (upside) Compress(_ string, data []byte) ([]byte, error) { return reverse(data), nil }

func (upside) Decompress(_ string, data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("bad")) {
		return nil, errUpside
	}
	return reverse(data), nil
}

func reverse(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := len(data) - 1; i >= 0; i-- {
		out = append(out, data[i])
	}
	return out
}

func TestCompressionProvider(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := connectClient(t, connect, framework.WithCompression(),
		framework.WithCompressionProvider(upside{}))
	create(t, client, "/a", "abc")
	if got := newTree(t).data(chrootOf(connect) + "/a"); got != "cba" {
		t.Errorf("on the server %q", got)
	}
	if got := read(t, client, "/a"); got != "abc" {
		t.Errorf("read %q", got)
	}
	create(t, client, "/bad", "dab")
	_, err := client.GetData().ForPath(testenv.Context(t), "/bad")
	wantErr(t, "get data", err, errUpside)
}
