package builders

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/jute"
)

const (
	javaHello = "1f8b0800000000000000cb48cdc9c9070086a6103605000000" // what Java writes for "hello"
	javaEmpty = "1f8b080000000000000003000000000000000000"
)

func TestGzipCompressionRoundTrip(t *testing.T) {
	t.Parallel()
	random := make([]byte, 3<<20) // more than a kept buffer
	source := rand.NewChaCha8([32]byte{})
	if _, err := source.Read(random); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		data []byte
	}{
		{"one byte", []byte{0}},
		{"text", []byte("hello")},
		{"long text", []byte(strings.Repeat("hello, world; ", 10_000))},
		{"zeros", make([]byte, 1<<20)},
		{"random", random},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			compressed, err := GzipCompression{}.Compress("/a", tt.data)
			if err != nil {
				t.Fatal(err)
			}
			if header := hex.EncodeToString(compressed[:10]); header != javaHello[:20] {
				t.Errorf("header is %s, Java's is %s", header, javaHello[:20])
			}
			data, err := GzipCompression{}.Decompress("/a", compressed)
			if err != nil || !bytes.Equal(data, tt.data) {
				t.Errorf("Decompress = %d bytes, %v, want the %d from before", len(data), err, len(tt.data))
			}
		})
	}
}

func TestGzipCompressionEmpty(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{nil, {}} {
		compressed, err := GzipCompression{}.Compress("/a", data)
		if got := hex.EncodeToString(compressed); err != nil || got != javaEmpty {
			t.Fatalf("Compress(nothing) = %s, %v, want %s", got, err, javaEmpty)
		}
		compressed[0] = 'x' // is the caller's
	}
	data, err := GzipCompression{}.Decompress("/a", unhex(t, javaEmpty))
	if err != nil || data == nil || len(data) > 0 {
		t.Errorf("Decompress = %v, %v, want an empty slice", data, err)
	}
}

func TestGzipCompressionDecompress(t *testing.T) {
	t.Parallel()
	hello := unhex(t, javaHello)
	tests := []struct {
		name       string
		compressed []byte
		want       string
		wantErr    string // part of it
	}{
		{name: "Java", compressed: hello, want: "hello"},
		{name: "Java, empty", compressed: unhex(t, javaEmpty)},
		{name: "Java 16, empty", compressed: unhex(t, "1f8b08000000000000ff03000000000000000000")},
		{name: "another system", compressed: withHeader(t, "1f8b08000000000000ff"), want: "hello"},
		{name: "time and flags", compressed: withHeader(t, "1f8b0801123456780203"), want: "hello"},
		{name: "extra field", compressed: withHeader(t, "1f8b0804000000000000"+"0100"+"01"), want: "hello"},
		{name: "name", compressed: withHeader(t, "1f8b0808000000000000"+"6100"), want: "hello"},
		{name: "comment", compressed: withHeader(t, "1f8b0810000000000000"+"6100"), want: "hello"},
		{
			name:       "all, and the header's checksum",
			compressed: withHeaderChecksum(t, "1f8b081e000000000000"+"0100"+"01"+"6100"+"6200"),
			want:       "hello",
		},
		{name: "a thousand to one", compressed: bomb(t, 1<<20), want: strings.Repeat("\x00", 1<<20)},

		{name: "nothing", wantErr: "unexpected EOF"},
		{name: "plain", compressed: []byte("hello, this is not compressed"), wantErr: "invalid header"},
		{name: "half a header", compressed: hello[:5], wantErr: "unexpected EOF"},
		{name: "header only", compressed: hello[:10], wantErr: "unexpected EOF"},
		{name: "no trailer", compressed: hello[:len(hello)-8], wantErr: "unexpected EOF"},
		{name: "cut off", compressed: hello[:len(hello)-1], wantErr: "unexpected EOF"},
		{name: "other method", compressed: withHeader(t, "1f8b0700000000000000"), wantErr: "invalid header"},
		{
			name:       "bad header checksum",
			compressed: withHeader(t, "1f8b08020000000000001234"),
			wantErr:    "invalid header",
		},
		{name: "endless name", compressed: unhex(t, "1f8b080800000000000061"), wantErr: "unexpected EOF"},
		{name: "corrupt data", compressed: flip(hello, 12), wantErr: "gzip"},
		{name: "bad block", compressed: withHeader(t, "1f8b0800000000000000ff"), wantErr: "corrupt input"},
		{name: "corrupt checksum", compressed: flip(hello, len(hello)-8), wantErr: "invalid checksum"},
		{name: "corrupt size", compressed: flip(hello, len(hello)-4), wantErr: "invalid checksum"},
		{name: "more", compressed: append(bytes.Clone(hello), 0), wantErr: "1 bytes after the end"},
		{name: "two", compressed: append(bytes.Clone(hello), hello...), wantErr: "25 bytes after the end"},
		{
			name:       "two of nothing",
			compressed: append(unhex(t, javaEmpty), unhex(t, javaEmpty)...),
			wantErr:    "20 bytes after the end",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := bytes.Clone(tt.compressed)
			data, err := GzipCompression{}.Decompress("/a/b", tt.compressed)
			if !bytes.Equal(before, tt.compressed) {
				t.Error("the input was changed")
			}
			if tt.wantErr == "" {
				if err != nil || string(data) != tt.want {
					t.Errorf("Decompress = %q, %v, want %q", data, err, tt.want)
				}
				return
			}
			if !errors.Is(err, jute.ErrDataInconsistency) || data != nil {
				t.Fatalf("Decompress = %q, %v, want a data inconsistency", data, err)
			}
			if text := err.Error(); !strings.Contains(text, tt.wantErr) || !strings.Contains(text, "/a/b") {
				t.Errorf("Decompress: %v, want %q and the path in it", err, tt.wantErr)
			}
		})
	}
}

func TestGzipCompressionMaxSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		maxSize int64
		size    int
		wantErr bool
	}{
		{"as much as allowed", 1000, 1000, false},
		{"one more", 1000, 1001, true},
		{"many more", 1000, 1 << 20, true},
		{"the usual", 0, 1 << 20, false},
		{"below zero is as usual", -1, 1 << 20, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			compressed, err := GzipCompression{}.Compress("/a", make([]byte, tt.size))
			if err != nil {
				t.Fatal(err)
			}
			data, err := GzipCompression{MaxSize: tt.maxSize}.Decompress("/a", compressed)
			if tt.wantErr {
				if !errors.Is(err, ErrDecompressedTooLarge) || data != nil {
					t.Errorf("Decompress = %d bytes, %v, want ErrDecompressedTooLarge", len(data), err)
				}
				return
			}
			if err != nil || len(data) != tt.size {
				t.Errorf("Decompress = %d bytes, %v, want %d", len(data), err, tt.size)
			}
		})
	}
}

func TestGzipCompressionLimit(t *testing.T) {
	t.Parallel()
	const usual = 64 << 20
	for maxSize, want := range map[int64]int64{0: usual, -1: usual, 1: 1, usual + 1: usual + 1} {
		if got := (GzipCompression{MaxSize: maxSize}).limit(); got != want {
			t.Errorf("limit of %d is %d, want %d", maxSize, got, want)
		}
	}
}

// TestGzipCompressionConcurrent: what is kept between calls belongs to one at a time.
func TestGzipCompressionConcurrent(t *testing.T) {
	t.Parallel()
	var provider CompressionProvider = GzipCompression{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				want := bytes.Repeat([]byte{byte(i), byte(n)}, 10+100*i)
				compressed, err := provider.Compress("/a", want)
				if err != nil {
					t.Error(err)
					return
				}
				if n%5 == 0 { // what failed must leave nothing behind
					_, _ = provider.Decompress("/a", compressed[:len(compressed)/2])
				}
				if got, err := provider.Decompress("/a", compressed); err != nil || !bytes.Equal(got, want) {
					t.Errorf("Decompress = %v, %v, want %v", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func ExampleGzipCompression() {
	compression := GzipCompression{MaxSize: 1 << 20}
	compressed, err := compression.Compress("/a", bytes.Repeat([]byte("hello "), 1000))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := compression.Decompress("/a", compressed)
	fmt.Println(len(compressed) < 100, len(data), err)

	_, err = compression.Decompress("/a", []byte("hello"))
	fmt.Println(err)
	// Output:
	// true 6000 <nil>
	// curator: data inconsistency: decompress /a: unexpected EOF
}

func FuzzGzipCompressionRoundTrip(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("hello"))
	f.Add(bytes.Repeat([]byte("ab"), 1000))
	f.Fuzz(func(t *testing.T, want []byte) {
		compressed, err := GzipCompression{}.Compress("/a", want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := GzipCompression{}.Decompress("/a", compressed)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("Decompress = %q, %v, want %q", got, err, want)
		}
	})
}

func FuzzGzipCompressionCorrupt(f *testing.F) {
	hello, err := hex.DecodeString(javaHello)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(hello)
	f.Add(hello[:12])
	f.Add(append(bytes.Clone(hello), hello...))
	f.Fuzz(func(t *testing.T, compressed []byte) {
		const limit = 1 << 16
		data, err := GzipCompression{MaxSize: limit}.Decompress("/a", compressed)
		switch {
		case err == nil && len(data) > limit:
			t.Errorf("%d bytes, more than the limit", len(data))
		case err == nil:
			again, err := GzipCompression{}.Compress("/a", data)
			if err != nil {
				t.Fatal(err)
			}
			same, err := GzipCompression{}.Decompress("/a", again)
			if err != nil || !bytes.Equal(data, same) {
				t.Errorf("Decompress = %q, %v, want %q", same, err, data)
			}
		case !errors.Is(err, jute.ErrDataInconsistency) && !errors.Is(err, ErrDecompressedTooLarge):
			t.Error(err)
		}
	})
}

func BenchmarkGzipCompression(b *testing.B) {
	data := []byte(strings.Repeat("some text of a node; ", 50))
	compressed, err := GzipCompression{}.Compress("/a", data)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Compress", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = GzipCompression{}.Compress("/a", data)
		}
	})
	b.Run("Decompress", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = GzipCompression{}.Decompress("/a", compressed)
		}
	})
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withHeader returns Java's "hello" with another header.
func withHeader(t *testing.T, header string) []byte {
	t.Helper()
	return append(unhex(t, header), unhex(t, javaHello[20:])...)
}

func withHeaderChecksum(t *testing.T, header string) []byte {
	t.Helper()
	h := unhex(t, header)
	h = binary.LittleEndian.AppendUint16(h, uint16(crc32.ChecksumIEEE(h)))
	return withHeader(t, hex.EncodeToString(h))
}

// bomb returns that many zeros in a form that compresses them to almost nothing.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 0xff
	return b
}
