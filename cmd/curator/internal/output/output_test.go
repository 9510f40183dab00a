package output

import (
	"strings"
	"testing"
)

type row struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Data
}

func TestRows(t *testing.T) {
	rows := []row{{"a<b", 1, NewData([]byte("no"))}, {"long name", 22, NewData([]byte{0xff})}, {"none", 3, NewData(nil)}}
	for format, want := range map[Format]string{
		Table: "NAME       COUNT\na<b        1\nlong name  22\nnone       3\n",
		JSON: `{"name":"a<b","count":1,"data":"no"}` + "\n" + `{"name":"long name","count":22,"dataBase64":"/w=="}` + "\n" +
			`{"name":"none","count":3}` + "\n",
		YAML: "name: a<b\ncount: 1\ndata: \"no\"\n---\nname: long name\ncount: 22\ndataBase64: /w==\n---\n" +
			"name: none\ncount: 3\n",
	} {
		var out strings.Builder
		w := New(&out, format, "NAME", "COUNT")
		for _, r := range rows {
			w.Row(r, r.Name, map[int]string{1: "1", 22: "22", 3: "3"}[r.Count])
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if out.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", format.String(), out.String(), want)
		}
	}
}

func TestSessionIsThatOfZooKeeper(t *testing.T) {
	for id, want := range map[int64]string{0: "", 0x100a: "0x100a", -1: "0xffffffffffffffff"} {
		if got := Session(id); got != want {
			t.Errorf("Session(%d) = %q, want %q", id, got, want)
		}
	}
}
