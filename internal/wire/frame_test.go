package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
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
	for _, buffer := range []int{firstBuffer, largestBuffer} {
		for first := buffer - 12; first < buffer+6; first++ {
			for _, second := range []int{0, 1, 2, 3, 4, 9} {
				for _, most := range []int{1 << 20, buffer - 1, buffer/600 + 1} {
					readFrames(t, most, first, second, 5, buffer, 3*buffer, 1)
				}
			}
		}
	}
}

// readFrames reads frames of these sizes with reads of at most so many bytes.
func readFrames(t *testing.T, most int, sizes ...int) {
	t.Helper()
	var stream []byte
	var frames [][]byte
	for i, n := range sizes {
		f := binary.BigEndian.AppendUint32(nil, uint32(n))
		f = append(f, bytes.Repeat([]byte{byte('a' + i)}, n)...)
		frames, stream = append(frames, f), append(stream, f...)
	}
	r := newFrameReader(&chunked{left: stream, most: most}, noClock, maxFrame, nil)
	for i, want := range frames {
		got, err := r.next(true)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("sizes %d, reads of %d: frame %d is wrong: %v", sizes, most, i, err)
		}
	}
	if _, err := r.next(true); err != io.EOF {
		t.Fatalf("behind the last frame: %v", err)
	}
}

// Idle connections are many, so that a buffer is small until there are bytes for it.
func TestBufferGrowsWithFrames(t *testing.T) {
	var stream []byte
	sizes := []int{100, 5000, 12_000, 60_000, 100}
	for _, n := range sizes {
		stream = binary.BigEndian.AppendUint32(stream, uint32(n))
		stream = append(stream, make([]byte, n)...)
	}
	r := newFrameReader(&chunked{left: stream, most: 3000}, noClock, maxFrame, nil)
	var got []int
	for range sizes {
		if _, err := r.next(true); err != nil {
			t.Fatal(err)
		}
		got = append(got, len(r.buf)>>10)
	}
	if want := []int{4, 8, 16, 64, 64}; !slices.Equal(got, want) {
		t.Errorf("buffers of %d KB, want %d", got, want)
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
