// Package codec turns values into the bytes of a node and back. The queues, [recipes/cache.Typed] and
// [recipes/shared.Value] take a codec wherever bytes are a value.
//
//	codec.JSON[Settings]{} // JSON of a type of the program
//	codec.Text{}           // a string
//	codec.Raw{}            // bytes, as they are
//
// A codec of the program is any type with the two methods of [Codec]: one that checks values, one for protocol
// buffers. In Java: ModelSerializer, QueueSerializer.
//
// [recipes/cache.Typed]: https://pkg.go.dev/github.com/gocurator/curator/recipes/cache#Typed
// [recipes/shared.Value]: https://pkg.go.dev/github.com/gocurator/curator/recipes/shared#Value
package codec

import (
	"bytes"
	"encoding/json"
)

// Codec turns values into bytes and back. Its methods may be called concurrently, and must not change or keep the bytes
// that they get. In Java: ModelSerializer.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(data []byte) (T, error)
}

// JSON is a codec that uses encoding/json. A node without data does not decode. In Java: JacksonModelSerializer.
type JSON[T any] struct{}

// Encode returns the JSON of a value.
func (JSON[T]) Encode(value T) ([]byte, error) { return json.Marshal(value) }

// Decode returns the value of a JSON.
func (JSON[T]) Decode(data []byte) (value T, err error) {
	err = json.Unmarshal(data, &value)
	return value, err
}

// Text is the codec of strings, as UTF-8.
type Text struct{}

// Encode returns the bytes of a string.
func (Text) Encode(value string) ([]byte, error) { return []byte(value), nil }

// Decode returns the string of bytes.
func (Text) Decode(data []byte) (string, error) { return string(data), nil }

// Raw is the codec of bytes. In Java: ModelSerializer.raw.
type Raw struct{}

// Encode returns value.
func (Raw) Encode(value []byte) ([]byte, error) { return value, nil }

// Decode returns a copy of data, which the caller may change.
func (Raw) Decode(data []byte) ([]byte, error) { return bytes.Clone(data), nil }
