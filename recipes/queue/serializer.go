package queue

import "encoding/json"

// Serializer turns items into bytes and back. Its methods are called from several goroutines. In Java:
// QueueSerializer.
type Serializer[T any] interface {
	Serialize(item T) ([]byte, error)
	Deserialize(data []byte) (T, error)
}

// JSON is a serializer that uses encoding/json.
type JSON[T any] struct{}

// Serialize returns the JSON of an item.
func (JSON[T]) Serialize(item T) ([]byte, error) { return json.Marshal(item) }

// Deserialize returns the item of a JSON.
func (JSON[T]) Deserialize(data []byte) (item T, err error) {
	err = json.Unmarshal(data, &item)
	return item, err
}

// Bytes is the serializer of bytes. It returns them unchanged.
type Bytes struct{}

// Serialize returns item.
func (Bytes) Serialize(item []byte) ([]byte, error) { return item, nil }

// Deserialize returns data.
func (Bytes) Deserialize(data []byte) ([]byte, error) { return data, nil }

// String is the serializer of strings in UTF-8.
type String struct{}

// Serialize returns the bytes of item.
func (String) Serialize(item string) ([]byte, error) { return []byte(item), nil }

// Deserialize returns the string of data.
func (String) Deserialize(data []byte) (string, error) { return string(data), nil }
