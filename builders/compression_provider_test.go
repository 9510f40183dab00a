package builders_test

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// The background is in TestPanicsOfTheUsersCodeAreReported.
func TestCompressionProviderThatPanicsIsTheErrorOfItsOperation(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t, framework.WithCompressionProvider(panicking{}))
	tr.make("/n", "packed")
	op := client.TransactionOp()
	tests := []struct {
		name, provider string
		ev             callbacks.Event
	}{
		{"create", "compress", foreground.create(t, client.Create().Compressed(), "/x", []byte("data"))},
		{"create in the background", "compress", background.create(t, client.Create().Compressed(), "/x", []byte("data"))},
		{"setData", "compress", foreground.setData(t, client.SetData().Compressed(), "/n", []byte("data"))},
		{
			"transaction", "compress",
			foreground.transaction(t, client.Transaction(), op.SetData().Compressed().ForPath("/n", []byte("data"))),
		},
		{"getData", "decompress", foreground.getData(t, client.GetData().Decompressed(), "/n")},
	}
	for _, tt := range tests {
		want := "panic in the compression provider builders_test.panicking: " + tt.provider
		if tt.ev.Err == nil || !strings.Contains(tt.ev.Err.Error(), want) {
			t.Errorf("%s: error is %v, want it to say %q", tt.name, tt.ev.Err, want)
		}
	}
	equal(t, "nodes", tr.children("/"), []string{"n"})
}
