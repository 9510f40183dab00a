package kerberos

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// exchange is the login of one connection (RFC 4752): the ticket, the server's offer of layers of protection, and the
// choice of none. With mutual authentication the server first shows that it could read the ticket.
type exchange struct {
	client, server principalName
	ticket         *ticket
	mutual         bool
	now            func() time.Time

	next          func(*exchange, []byte) (reply []byte, done bool, err error)
	authenticator types.Authenticator
	key           types.EncryptionKey // of the tokens that follow
	fromAcceptor  bool                // the key is of the server
}

func newExchange(client, server principalName, t *ticket, mutual bool, now func() time.Time) *exchange {
	return &exchange{client: client, server: server, ticket: t, mutual: mutual, now: now, next: (*exchange).begin}
}

// Next answers a token of the server.
func (e *exchange) Next(token []byte) (reply []byte, done bool, err error) { return e.next(e, token) }

var (
	errOver  = errors.New("the login is over")
	errToken = errors.New("the token of the server cannot be read")
)

func (e *exchange) over([]byte) ([]byte, bool, error) {
	return nil, false, e.refused("next token", errOver)
}

// begin returns the first token: the ticket, and the proof that it is ours. That has a key of its own, so that nobody
// can answer with what a server has said in an earlier login with the same ticket.
func (e *exchange) begin([]byte) (reply []byte, done bool, err error) {
	e.next = (*exchange).over
	if e.key, err = newKey(e.ticket.key); err != nil {
		return nil, false, e.refused("key of the ticket", err)
	}
	e.authenticator = newAuthenticator(e.client, e.now())
	e.authenticator.SubKey = e.key
	wanted := uint32(gssapi.ContextFlagConf | gssapi.ContextFlagInteg)
	if e.mutual {
		wanted |= gssapi.ContextFlagMutual
	}
	// RFC 4121, section 4.1.1: the length of the channel bindings, which are none, and the flags.
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], wanted)
	e.authenticator.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: sum}
	request, err := messages.NewAPReq(e.ticket.Ticket, e.ticket.key, e.authenticator)
	if err != nil {
		return nil, false, e.refused("first token", err)
	}
	if e.mutual {
		types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	}
	body, err := request.Marshal()
	if err != nil {
		return nil, false, e.refused("first token", err)
	}
	e.ticket.unproven.Add(1)
	e.next = (*exchange).choose
	if e.mutual {
		e.next = (*exchange).verify
	}
	return frame(tokenRequest, body), false, nil
}

// verify checks that the server could read the ticket.
func (e *exchange) verify(token []byte) (reply []byte, done bool, err error) {
	e.next = (*exchange).over
	if err := e.answered(token); err != nil {
		return nil, false, err
	}
	body, err := e.unframe(token, tokenReply)
	if err != nil {
		return nil, false, err
	}
	var r messages.APRep
	if r.Unmarshal(body) != nil {
		return nil, false, e.refused("reply to the ticket", errToken)
	}
	plain, err := decrypt(r.EncPart, e.ticket.key, keyusage.AP_REP_ENCPART)
	var part messages.EncAPRepPart
	if err == nil {
		err = part.Unmarshal(plain)
	}
	if err != nil || !part.CTime.Equal(e.authenticator.CTime) || part.Cusec != e.authenticator.Cusec {
		return nil, false, e.refused("the server has not shown that it has the key of its principal", nil)
	}
	if part.Subkey.KeyType != 0 {
		if _, err := typeOf(part.Subkey); err != nil {
			return nil, false, e.refused("key of the server", err)
		}
		e.key, e.fromAcceptor = part.Subkey, true
	}
	e.next = (*exchange).choose
	return []byte{}, false, nil
}

// noLayer is the layer of protection that is none: what follows is as without SASL. Apache ZooKeeper knows no other.
const noLayer = 1

// choose answers the offer of layers of protection.
func (e *exchange) choose(token []byte) (reply []byte, done bool, err error) {
	e.next = (*exchange).over
	if err := e.answered(token); err != nil {
		return nil, false, err
	}
	if bytes.HasPrefix(token, []byte{0x60}) {
		if _, err := e.unframe(token, tokenError); err != nil {
			return nil, false, err
		}
	}
	offer, err := unwrap(token, e.key, e.fromAcceptor)
	switch {
	case err != nil:
		return nil, false, e.refused("offer of the server", err)
	case len(offer) != 4:
		return nil, false, e.refused("offer of the server", errToken)
	case offer[0]&noLayer == 0:
		return nil, false, e.refused("the server wants all to be signed or encrypted by SASL: use TLS", nil)
	}
	choice := append([]byte{noLayer, 0, 0, 0}, e.client.String()...)
	reply, err = wrap(choice, e.key, e.fromAcceptor, uint64(e.authenticator.SeqNumber))
	if err != nil {
		return nil, false, e.refused("choice", err)
	}
	e.next = (*exchange).end
	return reply, false, nil
}

// end takes the end of the login.
func (e *exchange) end(token []byte) (reply []byte, done bool, err error) {
	e.next = (*exchange).over
	if len(token) > 0 {
		return nil, false, e.refused("the server goes on after the end", nil)
	}
	return nil, true, nil
}

// answered takes that the server has accepted the ticket. A server without SASL answers without a token.
func (e *exchange) answered(token []byte) error {
	if len(token) == 0 {
		return e.refused("the server has no SASL", nil)
	}
	e.ticket.unproven.Store(0)
	return nil
}

// The kinds of tokens of RFC 4121, section 4.1.
const (
	tokenRequest = "\x01\x00"
	tokenReply   = "\x02\x00"
	tokenError   = "\x03\x00"
)

// mechanism is the identifier of Kerberos, 1.2.840.113554.1.2.2, in DER.
const mechanism = "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"

func frame(kind string, body []byte) []byte {
	return asn1tools.AddASNAppTag(append([]byte(mechanism+kind), body...), 0)
}

// unframe returns the body of a token of a kind. An error of the server is an error.
func (e *exchange) unframe(token []byte, kind string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(token, []byte{0x60})
	if ok {
		rest, ok = cutLength(rest)
	}
	if ok {
		rest, ok = bytes.CutPrefix(rest, []byte(mechanism))
	}
	if !ok || len(rest) < 2 {
		return nil, e.refused("frame", errToken)
	}
	switch got := string(rest[:2]); {
	case got == tokenError:
		var refusal messages.KRBError
		if refusal.Unmarshal(rest[2:]) != nil {
			return nil, e.refused("error of the server", errToken)
		}
		if refusal.ErrorCode == errorcode.KRB_AP_ERR_SKEW {
			return nil, e.refused("the clock of the server is another: set the clocks, as by NTP", refusal)
		}
		return nil, e.refused("the server refuses the ticket", refusal)
	case got != kind:
		return nil, e.refused("kind", errToken)
	}
	return rest[2:], nil
}

// cutLength cuts off a length in DER, and reports whether that many bytes follow.
func cutLength(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	n, b := int(b[0]), b[1:]
	if n >= 0x80 {
		digits := n - 0x80
		if digits == 0 || digits > 3 || digits > len(b) {
			return nil, false
		}
		n = 0
		for _, d := range b[:digits] {
			n = n<<8 | int(d)
		}
		b = b[digits:]
	}
	return b, n == len(b)
}

// The flags of a token that wraps others (RFC 4121, section 4.2.2), and the length of its head.
const (
	sentByAcceptor = 1
	sealed         = 2
	acceptorSubkey = 4

	wrapHead = 16
)

var (
	errWrap   = errors.New("it is no token of RFC 4121, section 4.2.6.2")
	errSealed = errors.New("it is encrypted")
	errSubkey = errors.New("it is wrapped with another key than that agreed on")
	errSum    = errors.New("the server has not shown that it has the key of its principal")
)

// unwrap returns what is in a token of the server, after its signature was checked.
func unwrap(token []byte, key types.EncryptionKey, fromAcceptor bool) ([]byte, error) {
	if len(token) < wrapHead || token[0] != 5 || token[1] != 4 || token[3] != 0xff || token[2]&sentByAcceptor == 0 {
		return nil, errWrap
	}
	switch set := token[2]; {
	case set&sealed != 0:
		return nil, errSealed
	case set&acceptorSubkey != 0 != fromAcceptor:
		return nil, errSubkey
	}
	length, rotated := int(binary.BigEndian.Uint16(token[4:])), int(binary.BigEndian.Uint16(token[6:]))
	body := token[wrapHead:]
	if length > len(body) {
		return nil, errWrap
	}
	if rotated > 0 && len(body) > 0 { // to the right
		rotated %= len(body)
		body = append(append([]byte(nil), body[rotated:]...), body[:rotated]...)
	}
	text, sum := body[:len(body)-length], body[len(body)-length:]
	want, err := signature(text, token[2], binary.BigEndian.Uint64(token[8:]), key, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(sum, want) {
		return nil, errSum
	}
	return text, nil
}

// wrap returns a token with a text and its signature.
func wrap(text []byte, key types.EncryptionKey, fromAcceptor bool, sequence uint64) ([]byte, error) {
	var set byte
	if fromAcceptor {
		set = acceptorSubkey
	}
	sum, err := signature(text, set, sequence, key, keyusage.GSSAPI_INITIATOR_SEAL)
	if err != nil {
		return nil, err
	}
	head := wrapHeader(set, sequence)
	binary.BigEndian.PutUint16(head[4:], uint16(len(sum)))
	return append(append(head, text...), sum...), nil
}

// wrapHeader is the head that is signed: without the length of the signature and the rotation.
func wrapHeader(set byte, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{5, 4, set, 0xff, 0, 0, 0, 0}, sequence)
}

func signature(text []byte, set byte, sequence uint64, key types.EncryptionKey, usage uint32) ([]byte, error) {
	kind, err := typeOf(key)
	if err != nil {
		return nil, err
	}
	signed := append(append([]byte(nil), text...), wrapHeader(set, sequence)...)
	return kind.GetChecksumHash(key.KeyValue, signed, usage)
}
