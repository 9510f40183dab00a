package codec_test

import (
	"fmt"

	"github.com/gocurator/curator/codec"
)

// limits checks values beside the JSON.
type limits struct{ codec.JSON[int] }

func (l limits) Decode(data []byte) (int, error) {
	n, err := l.JSON.Decode(data)
	if err == nil && n < 1 {
		err = fmt.Errorf("limit %d", n)
	}
	return n, err
}

func ExampleCodec() {
	var c codec.Codec[int] = limits{}
	for _, data := range []string{"10", "0"} {
		fmt.Println(c.Decode([]byte(data)))
	}
	// Output:
	// 10 <nil>
	// 0 limit 0
}
