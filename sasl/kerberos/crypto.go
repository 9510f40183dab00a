package kerberos

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/types"
)

var errShort = errors.New("too few bytes")

// typeOf returns the encryption type of a key that has the right length for it.
func typeOf(key types.EncryptionKey) (etype.EType, error) {
	t, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	if len(key.KeyValue) != keySize(t) {
		return nil, errShort
	}
	return t, nil
}

// keySize returns the length of keys. That of gokrb5 is, for one type, the length of the keys that are made of them.
func keySize(t etype.EType) int {
	if t.GetETypeID() == etypeID.AES256_CTS_HMAC_SHA384_192 {
		return 32
	}
	return t.GetKeyByteSize()
}

// newKey returns a random key of the same type.
func newKey(like types.EncryptionKey) (types.EncryptionKey, error) {
	t, err := typeOf(like)
	if err != nil {
		return types.EncryptionKey{}, err
	}
	value := make([]byte, keySize(t))
	_, _ = rand.Read(value) // never fails
	return types.EncryptionKey{KeyType: like.KeyType, KeyValue: value}, nil
}

// decrypt decrypts what came from others. It checks the length first, so that bad data is an error and the process goes
// on.
func decrypt(part types.EncryptedData, key types.EncryptionKey, usage uint32) ([]byte, error) {
	t, err := typeOf(key)
	if err != nil {
		return nil, err
	}
	// Ciphertext stealing needs a block of 16 bytes; RC4 has a checksum of 16 bytes and a confounder of 8.
	if len(part.Cipher) < max(t.GetConfounderByteSize(), 16)+max(t.GetHMACBitLength()/8, 16) {
		return nil, errShort
	}
	return crypto.DecryptEncPart(part, key, usage)
}

func encrypt(plain []byte, key types.EncryptionKey, usage uint32, version int) (types.EncryptedData, error) {
	if _, err := typeOf(key); err != nil {
		return types.EncryptedData{}, err
	}
	return crypto.GetEncryptedData(plain, key, usage, version)
}

// maxIterations bounds what an answer that nobody has signed may cost to make a key of a password. The default of the
// types with SHA-2 is 32,768.
const maxIterations = 1 << 18

var errIterations = errors.New("the KDC asks for too many iterations to make a key of the password")

// keyOfPassword makes a key of a password. The salt and the parameters are the KDC's; without, they are the defaults.
func keyOfPassword(password string, kind int32, salt, params string) (types.EncryptionKey, error) {
	t, err := crypto.GetEtype(kind)
	if err != nil {
		return types.EncryptionKey{}, err
	}
	if params == "" {
		params = t.GetDefaultStringToKeyParams()
	}
	value, err := t.StringToKey(password, salt, params)
	if err != nil {
		return types.EncryptionKey{}, fmt.Errorf("key of the password: %w", err)
	}
	return types.EncryptionKey{KeyType: kind, KeyValue: value}, nil
}
