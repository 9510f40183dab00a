package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

func noClock() int64 { return 0 }

// chunked is a connection whose reads bring at most so many bytes.
type chunked struct {
	net.Conn
	left []byte
	most int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	if len(p) == 0 {
		panic("reads nothing")
	}
	n := copy(p[:min(len(p), c.most)], c.left)
	c.left = c.left[n:]
	return n, nil
}

// The ends of frames fall on and around the end of the buffer that they are read into.
func TestFramesAreReadWhereverTheirBytesFall(t *testing.T) {
	const buffer = 16 << 10
	for first := buffer - 12; first < buffer+6; first++ {
		for second := range 14 {
			for _, most := range []int{1 << 20, buffer - 1, 7} {
				var stream []byte
				var frames [][]byte
				for i, n := range []int{first, second, 5, buffer, 3 * buffer, 1} {
					f := binary.BigEndian.AppendUint32(nil, uint32(n))
					f = append(f, bytes.Repeat([]byte{byte('a' + i)}, n)...)
					frames, stream = append(frames, f), append(stream, f...)
				}
				r := newFrameReader(&chunked{left: stream, most: most}, noClock, maxFrame, nil)
				for i, want := range frames {
					got, err := r.next(true)
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("first %d, second %d, reads of %d: frame %d is wrong: %v", first, second, most, i, err)
					}
				}
				if _, err := r.next(true); err != io.EOF {
					t.Fatalf("behind the last frame: %v", err)
				}
			}
		}
	}
}

func TestFrameThatIsCutIsAnError(t *testing.T) {
	whole := []byte{0, 0, 0, 3, 'a', 'b', 'c'}
	for n := range whole {
		r := newFrameReader(&chunked{left: whole[:n], most: 100}, noClock, maxFrame, nil)
		if f, err := r.next(true); err == nil {
			t.Errorf("%d bytes make a frame: % x", n, f)
		}
	}
}
