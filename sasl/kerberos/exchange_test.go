package kerberos

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// keyOf returns a key of which all bytes are the same.
func keyOf(kind int32, b byte) types.EncryptionKey {
	n := 16
	if kind == etypeID.AES256_CTS_HMAC_SHA1_96 || kind == etypeID.AES256_CTS_HMAC_SHA384_192 {
		n = 32
	}
	return types.EncryptionKey{KeyType: kind, KeyValue: bytes.Repeat([]byte{b}, n)}
}

var (
	testClient = principalName{[]string{"alice"}, "EXAMPLE.TEST"}
	testServer = principalName{[]string{"zookeeper", "localhost"}, "EXAMPLE.TEST"}
)

func newTestExchange(mutual bool) *exchange {
	t := &ticket{
		Ticket: messages.Ticket{
			TktVNO: 5, Realm: testServer.realm, SName: testServer.service(),
			EncPart: types.EncryptedData{EType: etypeID.AES256_CTS_HMAC_SHA1_96, KVNO: 1, Cipher: make([]byte, 64)},
		},
		key: keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 1),
	}
	return newExchange(testClient, testServer, t, mutual, time.Now)
}

// acceptor is the server of an exchange.
type acceptor struct {
	authenticator types.Authenticator
	mutual        bool
	subkey        types.EncryptionKey // of its own, if that has a type
}

// newAcceptor reads the first token.
func newAcceptor(t *testing.T, e *exchange, token []byte) *acceptor {
	t.Helper()
	body, err := e.unframe(token, tokenRequest)
	if err != nil {
		t.Fatal(err)
	}
	var request messages.APReq
	if err := request.Unmarshal(body); err != nil {
		t.Fatal(err)
	}
	if err := request.DecryptAuthenticator(e.ticket.key); err != nil {
		t.Fatal(err)
	}
	return &acceptor{
		request.Authenticator, types.IsFlagSet(&request.APOptions, flags.APOptionMutualRequired),
		types.EncryptionKey{},
	}
}

func (a *acceptor) key() types.EncryptionKey {
	if a.subkey.KeyType != 0 {
		return a.subkey
	}
	return a.authenticator.SubKey
}

// reply is the answer to a ticket, encrypted with a key.
func (a *acceptor) reply(t *testing.T, key types.EncryptionKey, ctime time.Time) []byte {
	t.Helper()
	part := messages.EncAPRepPart{CTime: ctime, Cusec: a.authenticator.Cusec, Subkey: a.subkey}
	plain, err := asn1.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	plain = application(t, 27, plain)
	sealed, err := encrypt(plain, key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		t.Fatal(err)
	}
	body, err := asn1.Marshal(messages.APRep{PVNO: 5, MsgType: 15, EncPart: sealed})
	if err != nil {
		t.Fatal(err)
	}
	return frame(tokenReply, application(t, 15, body))
}

func application(t *testing.T, tag int, body []byte) []byte {
	t.Helper()
	b, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassApplication, Tag: tag, IsCompound: true, Bytes: body})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// offer is a token with the layers that the server offers.
func (a *acceptor) offer(t *testing.T, payload []byte, key types.EncryptionKey, set byte, rotate int) []byte {
	t.Helper()
	sum, err := signature(payload, set, 7, key, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		t.Fatal(err)
	}
	body := append(append([]byte(nil), payload...), sum...)
	n := len(body) - rotate
	body = append(append([]byte(nil), body[n:]...), body[:n]...)
	head := wrapHeader(set, 7)
	head[5], head[7] = byte(len(sum)), byte(rotate)
	return append(head, body...)
}

func next(t *testing.T, e *exchange, token []byte) []byte {
	t.Helper()
	reply, done, err := e.Next(token)
	if err != nil || done {
		t.Fatalf("%v, %v", done, err)
	}
	return reply
}

func TestExchange(t *testing.T) {
	t.Parallel()
	for _, mutual := range []bool{false, true} {
		for _, subkey := range []bool{false, true} {
			if subkey && !mutual {
				continue // there is no reply that has it
			}
			e := newTestExchange(mutual)
			a := newAcceptor(t, e, next(t, e, nil))
			if a.mutual != mutual || e.ticket.unproven.Load() != 1 {
				t.Errorf("mutual %v, %d unproven", a.mutual, e.ticket.unproven.Load())
			}
			flags := uint32(a.authenticator.Cksum.Checksum[20])
			if sum := a.authenticator.Cksum; sum.CksumType != 0x8003 || len(sum.Checksum) != 24 || flags != 0x30 && !mutual ||
				flags != 0x32 && mutual {
				t.Errorf("checksum %+v", sum)
			}
			set := byte(sentByAcceptor)
			if mutual {
				if subkey {
					a.subkey = keyOf(etypeID.AES128_CTS_HMAC_SHA256_128, 9)
					set |= acceptorSubkey
				}
				if reply := next(t, e, a.reply(t, e.ticket.key, a.authenticator.CTime)); reply == nil || len(reply) > 0 {
					t.Errorf("the answer to the reply is % x, want an empty token", reply)
				}
			}
			choice := next(t, e, a.offer(t, []byte{7, 1, 0, 0}, a.key(), set, 0))
			want, err := wrap([]byte("\x01\x00\x00\x00alice@EXAMPLE.TEST"), a.key(), subkey, uint64(a.authenticator.SeqNumber))
			if err != nil || !bytes.Equal(choice, want) {
				t.Errorf("the choice is % x, want % x, %v", choice, want, err)
			}
			if e.ticket.unproven.Load() != 0 {
				t.Error("the ticket is unproven")
			}
			if reply, done, err := e.Next(nil); reply != nil || !done || err != nil {
				t.Errorf("the end is % x, %v, %v", reply, done, err)
			}
			if _, _, err := e.Next(nil); !errors.Is(err, zk.ErrAuthFailed) {
				t.Errorf("after the end: %v", err)
			}
		}
	}
}

// The offer of a Java server, and an answer to it, with their key: they are in the tests of gokrb5.
func TestGoldenTokens(t *testing.T) {
	t.Parallel()
	key := types.EncryptionKey{
		KeyType: etypeID.AES128_CTS_HMAC_SHA1_96, KeyValue: unhex(t, "14f9bde6b50ec508201a97f74c4e5bd3"),
	}
	offer := unhex(t, "050401ff000c000000000000575e85d601010000853b728d5268525a1386c19f")
	if text, err := unwrap(offer, key, false); err != nil || !bytes.Equal(text, []byte{1, 1, 0, 0}) {
		t.Errorf("the offer is % x, %v", text, err)
	}
	choice, err := wrap([]byte{1, 1, 0, 0}, key, false, 0)
	if want := "050400ff000c000000000000000000000101000079a033510b6f127212242b97"; hex.EncodeToString(choice) != want {
		t.Errorf("the choice is %x, want %s, %v", choice, want, err)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOffersThatAreRefused(t *testing.T) {
	t.Parallel()
	good, other := []byte{1, 1, 0, 0}, keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 2)
	refusal := messages.NewKRBError(testServer.service(), testServer.realm, errorcode.KRB_AP_ERR_SKEW, "")
	skew, err := refusal.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	refusal.ErrorCode = errorcode.KRB_AP_ERR_MODIFIED
	modified, err := refusal.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		token func(a *acceptor) []byte
		wrong string
	}{
		"null":       {func(*acceptor) []byte { return nil }, "has no SASL"},
		"empty":      {func(*acceptor) []byte { return []byte{} }, "has no SASL"},
		"short":      {func(*acceptor) []byte { return []byte{5, 4, 1} }, "no token of RFC 4121"},
		"DIGEST-MD5": {func(*acceptor) []byte { return []byte(`realm="zk-sasl-md5",nonce="n"`) }, "no token of RFC 4121"},
		"ours": {func(a *acceptor) []byte {
			b, _ := wrap(good, a.key(), false, 0)
			return b
		}, "no token of RFC 4121"},
		"another key": {
			func(a *acceptor) []byte { return a.offer(t, good, other, sentByAcceptor, 0) },
			"has the key of its principal",
		},
		"key of the ticket, as in an earlier login": {func(a *acceptor) []byte {
			return a.offer(t, good, keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 1), sentByAcceptor, 0)
		}, "has the key of its principal"},
		"a key of the server that nobody knows": {func(a *acceptor) []byte {
			return a.offer(t, good, a.key(), sentByAcceptor|acceptorSubkey, 0)
		}, "another key than that agreed on"},
		"encrypted": {
			func(a *acceptor) []byte { return a.offer(t, good, a.key(), sentByAcceptor|sealed, 0) },
			"encrypted",
		},
		"signed layer alone": {func(a *acceptor) []byte {
			return a.offer(t, []byte{6, 1, 0, 0}, a.key(), sentByAcceptor, 0)
		}, "use TLS"},
		"no layer at all": {
			func(a *acceptor) []byte { return a.offer(t, []byte{0, 1, 0, 0}, a.key(), sentByAcceptor, 0) },
			"use TLS",
		},
		"long": {
			func(a *acceptor) []byte { return a.offer(t, []byte{1, 1, 0, 0, 0}, a.key(), sentByAcceptor, 0) },
			"cannot be read",
		},
		"changed": {func(a *acceptor) []byte {
			b := a.offer(t, []byte{6, 1, 0, 0}, a.key(), sentByAcceptor, 0)
			b[wrapHead] = 7
			return b
		}, "has the key of its principal"},
		"another number": {func(a *acceptor) []byte {
			b := a.offer(t, good, a.key(), sentByAcceptor, 0)
			b[15]++
			return b
		}, "has the key of its principal"},
		"signature that is longer": {func(a *acceptor) []byte {
			b := a.offer(t, good, a.key(), sentByAcceptor, 0)
			b[4] = 1
			return b
		}, "no token of RFC 4121"},
		"signature that is missing": {func(a *acceptor) []byte {
			b := a.offer(t, good, a.key(), sentByAcceptor, 0)
			b[5] = 0
			return b
		}, "has the key of its principal"},
		"clock skew":         {func(*acceptor) []byte { return frame(tokenError, skew) }, "set the clocks"},
		"error":              {func(*acceptor) []byte { return frame(tokenError, modified) }, "refuses the ticket"},
		"error without text": {func(*acceptor) []byte { return frame(tokenError, nil) }, "cannot be read"},
		"reply to no question": {func(a *acceptor) []byte {
			return a.reply(t, keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 1), a.authenticator.CTime)
		}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newTestExchange(false)
			a := newAcceptor(t, e, next(t, e, nil))
			reply, done, err := e.Next(tt.token(a))
			if reply != nil || done || !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), tt.wrong) ||
				!strings.Contains(err.Error(), "alice@EXAMPLE.TEST at zookeeper/localhost@EXAMPLE.TEST") {
				t.Errorf("% x, %v, %v", reply, done, err)
			}
			if _, _, err := e.Next(nil); !errors.Is(err, zk.ErrAuthFailed) {
				t.Errorf("after an error: %v", err)
			}
		})
	}
}

func TestRotatedOffer(t *testing.T) {
	t.Parallel()
	for rotate := range 17 {
		e := newTestExchange(false)
		a := newAcceptor(t, e, next(t, e, nil))
		if _, _, err := e.Next(a.offer(t, []byte{1, 1, 0, 0}, a.key(), sentByAcceptor, rotate)); err != nil {
			t.Errorf("rotated by %d: %v", rotate, err)
		}
	}
}

func TestRepliesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]func(e *exchange, a *acceptor) []byte{
		"another key": func(_ *exchange, a *acceptor) []byte {
			return a.reply(t, keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 2), a.authenticator.CTime)
		},
		"to another login": func(e *exchange, a *acceptor) []byte {
			return a.reply(t, e.ticket.key, a.authenticator.CTime.Add(time.Second))
		},
		"key of a kind that is unknown": func(e *exchange, a *acceptor) []byte {
			a.subkey = types.EncryptionKey{KeyType: 99, KeyValue: make([]byte, 16)}
			return a.reply(t, e.ticket.key, a.authenticator.CTime)
		},
		"key that is too short": func(e *exchange, a *acceptor) []byte {
			a.subkey = types.EncryptionKey{KeyType: etypeID.AES256_CTS_HMAC_SHA1_96, KeyValue: make([]byte, 16)}
			return a.reply(t, e.ticket.key, a.authenticator.CTime)
		},
		"offer at once": func(_ *exchange, a *acceptor) []byte {
			return a.offer(t, []byte{1, 1, 0, 0}, a.key(), sentByAcceptor, 0)
		},
		"null": func(*exchange, *acceptor) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newTestExchange(true)
			a := newAcceptor(t, e, next(t, e, nil))
			if reply, done, err := e.Next(token(e, a)); reply != nil || done || !errors.Is(err, zk.ErrAuthFailed) {
				t.Errorf("% x, %v, %v", reply, done, err)
			}
		})
	}
}

// FuzzTokens gives a client any tokens.
func FuzzTokens(f *testing.F) {
	f.Add(false, append([]byte{5, 4, 1, 0xff, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0}, make([]byte, 12)...))
	f.Add(true, frame(tokenReply, []byte{0x6f, 0}))
	f.Add(true, frame(tokenError, []byte{0x7e, 0}))
	part := types.EncryptedData{EType: 18, Cipher: make([]byte, 5)}
	short, err := asn1.Marshal(messages.APRep{PVNO: 5, MsgType: 15, EncPart: part})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, frame(tokenReply, append([]byte{0x6f, byte(len(short))}, short...)))
	f.Fuzz(func(t *testing.T, mutual bool, token []byte) {
		e := newTestExchange(mutual)
		if _, _, err := e.Next(nil); err != nil {
			t.Fatal(err)
		}
		if reply, done, err := e.Next(token); reply != nil || done || !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("% x, %v, %v", reply, done, err)
		}
	})
}
