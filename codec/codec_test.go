package codec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
)

type settings struct {
	Greeting string
	Rate     int
}

func TestCodecReturnsWhatItEncoded(t *testing.T) {
	check(t, codec.JSON[settings]{}, settings{"hello", 10}, `{"Greeting":"hello","Rate":10}`)
	check(t, codec.JSON[[]int]{}, nil, "null")
	check(t, codec.Text{}, "grüß dich", "grüß dich")
	check(t, codec.Text{}, "", "")
	check(t, codec.Raw{}, []byte{0, 1, 0xff}, "\x00\x01\xff")
	check(t, codec.Raw{}, []byte{}, "")
}

func check[T any](t *testing.T, c codec.Codec[T], value T, want string) {
	t.Helper()
	data, err := c.Encode(value)
	if err != nil || string(data) != want {
		t.Errorf("%T encodes %v as %q, %v, not as %q", c, value, data, err, want)
	}
	got, err := c.Decode([]byte(want))
	if diff := cmp.Diff(value, got); diff != "" || err != nil {
		t.Errorf("%T decodes %q: %v (-want +got):\n%s", c, want, err, diff)
	}
}

func TestJSONRefusesWhatIsNone(t *testing.T) {
	for _, data := range []string{"", "{", `{"Rate":"many"}`} {
		if v, err := (codec.JSON[settings]{}).Decode([]byte(data)); err == nil {
			t.Errorf("%q is %+v", data, v)
		}
	}
	if data, err := (codec.JSON[func()]{}).Encode(func() {}); err == nil {
		t.Errorf("a func is %s", data)
	}
}

// A codec must not keep the bytes that it gets: others may use them, a queue to put an item back.
func TestRawDecodesACopy(t *testing.T) {
	data := []byte("data")
	got, err := codec.Raw{}.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	got[0] = 'x'
	if string(data) != "data" {
		t.Errorf("the bytes are %q", data)
	}
}
