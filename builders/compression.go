package builders

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/gocurator/curator/internal/jute"
)

// ErrDecompressedTooLarge means that compressed data of a node would take more memory than
// [GzipCompression].MaxSize allows.
var ErrDecompressedTooLarge = errors.New("curator: decompressed data too large")

// CompressionProvider compresses the data of nodes. All readers and writers of a node must use the same one: nothing in
// the node shows whether or how its data is compressed.
//
// Both methods get the path of the node. They keep neither path nor data, do not change data, and return a slice of
// their own. They must be safe for concurrent use.
//
// In Java: CompressionProvider.
type CompressionProvider interface {
	// Compress returns the bytes to store in the node for data.
	Compress(path string, data []byte) ([]byte, error)
	// Decompress returns the data of the stored bytes.
	Decompress(path string, compressed []byte) ([]byte, error)
}

// defaultMaxSize is more than enough: by default a server accepts 1 MiB in a node.
const defaultMaxSize = 64 << 20

// keptBuffer is the largest capacity of a compressor's buffer that is kept.
const keptBuffer = 1 << 20

// GzipCompression is the default [CompressionProvider] of a client: one gzip member a node. It and Java Curator read
// each other's data. The zero value is ready to use.
//
// In Java: GzipCompressionProvider.
type GzipCompression struct {
	// MaxSize is the largest result of Decompress in bytes: a node of a kilobyte may hold a gigabyte of zeros. Anything
	// below 1 means 64 MiB. Java has no such bound.
	MaxSize int64
}

var _ CompressionProvider = GzipCompression{}

// emptyGzip is the data of a node that Java writes without data.
var emptyGzip = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// A compressor has almost a megabyte, so they are reused.
var (
	compressors   = sync.Pool{New: func() any { return &compressor{gzip: gzip.NewWriter(io.Discard)} }}
	decompressors = sync.Pool{New: func() any { return new(decompressor) }}
)

type compressor struct {
	buffer bytes.Buffer
	gzip   *gzip.Writer
}

type decompressor struct {
	source bytes.Reader
	gzip   gzip.Reader
}

// Compress returns data as one gzip member.
func (GzipCompression) Compress(path string, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return slices.Clone(emptyGzip), nil
	}
	c := compressors.Get().(*compressor)
	defer func() {
		if c.buffer.Cap() > keptBuffer {
			c.buffer = bytes.Buffer{}
		}
		c.buffer.Reset()
		compressors.Put(c)
	}()
	c.gzip.Reset(&c.buffer)
	c.gzip.OS = 0 // as in Java
	if _, err := c.gzip.Write(data); err != nil {
		return nil, fmt.Errorf("curator: compress %s: %w", path, err)
	}
	if err := c.gzip.Close(); err != nil {
		return nil, fmt.Errorf("curator: compress %s: %w", path, err)
	}
	return bytes.Clone(c.buffer.Bytes()), nil
}

// Decompress returns the data of compressed, which must be one gzip member and nothing else, with any header. If it is
// not, the error has the code DATAINCONSISTENCY. If the data is too large, the error is [ErrDecompressedTooLarge].
func (g GzipCompression) Decompress(path string, compressed []byte) ([]byte, error) {
	if bytes.Equal(compressed, emptyGzip) {
		return []byte{}, nil
	}
	limit := g.limit()
	d := decompressors.Get().(*decompressor)
	defer func() {
		d.source.Reset(nil) // the data is the caller's
		decompressors.Put(d)
	}()
	d.source.Reset(compressed)
	data, err := d.read(limit, sizeHint(compressed, limit))
	switch {
	case errors.Is(err, ErrDecompressedTooLarge):
		return nil, fmt.Errorf("%w: %s: more than %d bytes", ErrDecompressedTooLarge, path, limit)
	case err != nil:
		return nil, fmt.Errorf("%w: decompress %s: %w", jute.ErrDataInconsistency, path, err)
	}
	return data, nil
}

func (g GzipCompression) limit() int64 {
	if g.MaxSize < 1 {
		return defaultMaxSize
	}
	return g.MaxSize
}

func (d *decompressor) read(limit int64, hint int) ([]byte, error) {
	if err := d.gzip.Reset(&d.source); err != nil {
		return nil, noEOF(err)
	}
	d.gzip.Multistream(false)
	data := make([]byte, 0, hint)
	for {
		n, err := d.gzip.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, ErrDecompressedTooLarge
		case errors.Is(err, io.EOF):
			if d.source.Len() > 0 {
				return nil, fmt.Errorf("%d bytes after the end", d.source.Len())
			}
			return data, nil
		case err != nil:
			return nil, noEOF(err)
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
	}
}

// sizeHint estimates the size of the data. The last four bytes of the member have it, but may be anything, so a good
// compression bounds the estimate.
func sizeHint(compressed []byte, limit int64) int {
	const usual = 16
	size := usual * int64(len(compressed))
	if n := len(compressed); n >= 4 {
		size = min(size, int64(binary.LittleEndian.Uint32(compressed[n-4:])))
	}
	return int(min(size, limit)) + 1 // one more: the end comes without growing
}

// noEOF turns an io.EOF within the data into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
