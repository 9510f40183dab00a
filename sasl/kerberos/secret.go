package kerberos

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// secret makes the keys of a client.
type secret interface {
	// types returns those of the encryption types that it has keys of.
	types(allowed []int32) []int32
	// key returns the key of a type. version is that of the key, 0 for the newest. salt and params are what the KDC says
	// of it.
	key(kind int32, version int, salt string, params []byte) (types.EncryptionKey, int, error)
}

// passwordSecret is a secret that is the same for all types. It is a function, which no way of printing looks into.
type passwordSecret func() string

func (p passwordSecret) types(allowed []int32) []int32 { return allowed }

func (p passwordSecret) key(kind int32, _ int, salt string, params []byte) (types.EncryptionKey, int, error) {
	if len(params) != 4 {
		params = nil
	} else if n := binary.BigEndian.Uint32(params); n == 0 || n > maxIterations { // 0 is 1<<32 in RFC 3962
		return types.EncryptionKey{}, 0, errIterations
	}
	key, err := keyOfPassword(p(), kind, salt, hex.EncodeToString(params))
	return key, 0, err
}

// keys are the keys of one principal in a keytab.
type keys []keyVersion

type keyVersion struct {
	version int
	key     types.EncryptionKey
}

var errKeytab = errors.New("it is no keytab, or is being written")

// parseKeytab returns the keys of a principal, the newest first. The errors have nothing of the file, so that no key
// gets into a log.
func parseKeytab(b []byte, of principalName) (keys, error) {
	if len(b) < 2 || b[0] != 5 || b[1] != 2 && b[1] != 1 {
		return nil, errKeytab
	}
	var kt keytab.Keytab
	if len(b) > 2 { // an empty keytab has no more
		if err := kt.Unmarshal(b); err != nil {
			return nil, errKeytab
		}
	}
	var found keys
	var others []string
	for _, e := range kt.Entries {
		p := principalName{e.Principal.Components, e.Principal.Realm}
		if !p.equal(of) {
			if name := p.String(); !slices.Contains(others, name) && len(others) < 5 {
				others = append(others, name)
			}
			continue
		}
		if _, err := typeOf(e.Key); err == nil {
			found = append(found, keyVersion{int(e.KVNO), e.Key})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("it has no key of %s: it is of %q", of, others)
	}
	slices.SortStableFunc(found, func(a, b keyVersion) int { return b.version - a.version })
	return found, nil
}

func (k keys) types(allowed []int32) (kinds []int32) {
	for _, kind := range allowed {
		if slices.ContainsFunc(k, func(v keyVersion) bool { return v.key.KeyType == kind }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

var errNoKey = errors.New("the keytab has no such key")

func (k keys) key(kind int32, version int, _ string, _ []byte) (types.EncryptionKey, int, error) {
	var newest *keyVersion
	for i := range k {
		if k[i].key.KeyType != kind {
			continue
		}
		if k[i].version == version {
			return k[i].key, version, nil
		}
		if newest == nil {
			newest = &k[i]
		}
	}
	if newest == nil {
		return types.EncryptionKey{}, 0, errNoKey
	}
	return newest.key, newest.version, nil
}

func (k keys) equal(other keys) bool {
	return slices.EqualFunc(k, other, func(a, b keyVersion) bool {
		return a.version == b.version && a.key.KeyType == b.key.KeyType && bytes.Equal(a.key.KeyValue, b.key.KeyValue)
	})
}
