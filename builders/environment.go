package builders

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/opconfig"
	"github.com/gocurator/curator/zkpath"
)

// environment has the parts of a client that the operations in a namespace use.
type environment struct {
	*opconfig.Config
	*view
	// err is the error of all operations: the namespace is invalid.
	err       error
	namespace *namespace
	// telemetryNamespace is the namespace in spans and metrics: behind the chroot, "" without one.
	telemetryNamespace string
	// maxRequest is the size in bytes of the largest request that the server reads, without the chroot.
	maxRequest int
	// root is the environment of the client without a namespace, which lives as long as the client.
	root *environment
}

// newEnvironment returns the environment of a view without a fence and without a set of watchers. A nil root stands for
// the environment itself.
func newEnvironment(c *opconfig.Config, v *view, ns string, root *environment) *environment {
	chroot := c.Chroot()
	e := &environment{
		Config:     c,
		view:       v,
		namespace:  newNamespace(ns),
		maxRequest: c.MaxBuffer - len(chroot),
		root:       root,
	}
	if ns != "" {
		e.telemetryNamespace = strings.TrimPrefix(chroot+"/"+ns, "/")
		e.err = zkpath.ValidateNamespace(ns)
	}
	if root == nil {
		e.root = e
	}
	return e
}

// parentRequest is the create of a parent node.
func (e *environment) parentRequest(path string, container bool, acl []zk.ACL) jute.Request {
	r := jute.Request{Op: jute.OpCreate2, Path: path, Data: []byte{}, ACL: acl}
	if container && !e.NoContainers {
		r.Op, r.Flags = jute.OpCreateContainer, int32(Container)
	}
	return r
}

// data returns the bytes to write: nil stands for the default data.
func (e *environment) data(path string, data []byte, compress option) ([]byte, error) {
	if data == nil {
		data = e.DefaultData()
	}
	if data == nil {
		data = []byte{}
	}
	if !compress.or(e.CompressAll) {
		return data, nil
	}
	var packed []byte
	var err error
	panicked := guarded("compression", e.Compression, func() { packed, err = e.Compression.Compress(path, data) })
	if panicked != nil {
		return nil, panicked
	}
	return packed, err
}

// unpacked is the inverse of data. Data that does not decompress is returned as it is, with the error.
func (e *environment) unpacked(path string, data []byte, decompress option) ([]byte, error) {
	if !decompress.or(e.CompressAll) {
		return data, nil
	}
	var plain []byte
	var err error
	panicked := guarded("compression", e.Compression, func() { plain, err = e.Compression.Decompress(path, data) })
	switch {
	case panicked != nil:
		return data, panicked
	case err != nil:
		return data, err
	}
	return plain, nil
}

// option is a switch with a third state: the default of the client.
type option int8

const (
	unset option = iota
	on
	off
)

func (o option) or(def bool) bool {
	if o == unset {
		return def
	}
	return o == on
}

// clone copies a slice, so that a builder does not share it with its caller.
func clone[E any](s []E) []E { return slices.Clone(s) }
