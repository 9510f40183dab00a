package kerberos

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is a ticket for a server or a KDC, with the key that client and server share.
type ticket struct {
	messages.Ticket
	key                    types.EncryptionKey
	from, until, renewable time.Time

	// unproven counts logins that have sent the ticket and got no answer yet. A server may have a new key.
	unproven atomic.Int32
}

// isValid reports whether a ticket can be used at a time.
func (t *ticket) isValid(now time.Time) bool { return t != nil && now.Before(t.until) }

// isFresh reports whether a ticket has more than a fifth of its life before it, as Java has it.
func (t *ticket) isFresh(now time.Time) bool {
	return t.isValid(now) && t.until.Sub(now) > t.until.Sub(t.from)/5
}

var (
	errReply    = errors.New("the reply of the KDC is not what was asked for")
	errNoType   = errors.New("no encryption type in common")
	errTooMany  = errors.New("too many realms refer to each other")
	errPreAuth  = errors.New("the KDC asks for another proof than a key")
	errNotMine  = errors.New("the reply of the KDC cannot be decrypted")
	errKDCClock = errors.New("the time in the reply of the KDC is another")
)

// requester asks KDCs for tickets of one client.
type requester struct {
	conf   *config
	client principalName
	now    func() time.Time
	ask    func(ctx context.Context, c *config, realm string, request []byte) ([]byte, error)
}

func nonce() int {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return int(binary.BigEndian.Uint32(b[:]) & 0x7fffffff)
}

// body returns a request for a ticket.
func (r *requester) body(realm string, sname types.PrincipalName, kinds []int32, options ...int) messages.KDCReqBody {
	b := messages.KDCReqBody{
		KDCOptions: types.NewKrbFlags(),
		Realm:      realm, CName: r.client.client(), SName: sname,
		Till: r.now().UTC().Add(r.conf.ticketLifetime).Truncate(time.Second), Nonce: nonce(), EType: kinds,
	}
	types.SetFlags(&b.KDCOptions, options)
	return b
}

// authenticate gets a ticket for the KDC of the client's realm with a secret.
func (r *requester) authenticate(ctx context.Context, s secret) (*ticket, error) {
	kinds := s.types(r.conf.ticketTypes)
	if len(kinds) == 0 {
		return nil, errNoType
	}
	kdc := ticketGranting(r.client.realm, r.client.realm)
	request := messages.ASReq{KDCReqFields: messages.KDCReqFields{
		PVNO: iana.PVNO, MsgType: msgtype.KRB_AS_REQ, PAData: types.PADataSequence{},
		ReqBody: r.body(r.client.realm, kdc.service(), kinds, flags.RenewableOK),
	}}
	hint := keyHint{kind: kinds[0], salt: r.client.client().GetSalt(r.client.realm)}
	maker := &keyMaker{secret: s}
	var reply messages.ASRep
	err := r.exchange(ctx, r.client.realm, request.Marshal, reply.Unmarshal)
	if refusal := (messages.KRBError{}); errors.As(err, &refusal) &&
		refusal.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		var offered types.PADataSequence
		if err := offered.Unmarshal(refusal.EData); err != nil {
			return nil, errPreAuth
		}
		if known, err := hint.update(offered, kinds); err != nil || !known { // there is no key of these kinds
			return nil, errNoType
		}
		proof, err := r.proof(maker, hint)
		if err != nil {
			return nil, err
		}
		request.PAData = types.PADataSequence{proof}
		if err := r.exchange(ctx, r.client.realm, request.Marshal, reply.Unmarshal); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return r.finish(maker, &reply, &request, hint)
}

// finish checks and decrypts the reply.
func (r *requester) finish(m *keyMaker, reply *messages.ASRep, request *messages.ASReq, hint keyHint) (*ticket, error) {
	if !slices.Contains(request.ReqBody.EType, reply.EncPart.EType) || reply.CRealm != r.client.realm ||
		!reply.CName.Equal(request.ReqBody.CName) {
		return nil, errReply
	}
	if hint.kind != reply.EncPart.EType {
		hint = keyHint{kind: reply.EncPart.EType, salt: r.client.client().GetSalt(r.client.realm)}
	}
	if _, err := hint.update(reply.PAData, []int32{hint.kind}); err != nil {
		return nil, err
	}
	key, _, err := m.key(hint, reply.EncPart.KVNO)
	if err != nil {
		return nil, err
	}
	plain, err := decrypt(reply.EncPart, key, keyusage.AS_REP_ENCPART)
	if err != nil {
		return nil, errNotMine
	}
	t, err := open(reply.Ticket, plain, &request.ReqBody)
	if err != nil {
		return nil, err
	}
	if skew := t.from.Sub(r.now()); !t.SName.Equal(request.ReqBody.SName) {
		return nil, errReply
	} else if skew.Abs() > r.conf.clockSkew {
		return nil, &skewError{skew, r.conf.clockSkew, errKDCClock}
	}
	return t, nil
}

// keyHint is what a KDC says about the key of a client.
type keyHint struct {
	kind   int32
	salt   string
	params []byte
}

// keyMaker makes a key of a password once: that takes long, as it is meant to.
type keyMaker struct {
	secret
	hint keyHint
	made types.EncryptionKey
}

func (m *keyMaker) key(hint keyHint, version int) (types.EncryptionKey, int, error) {
	_, isPassword := m.secret.(passwordSecret)
	if isPassword && m.made.KeyValue != nil && hint.equal(m.hint) {
		return m.made, 0, nil
	}
	key, version, err := m.secret.key(hint.kind, version, hint.salt, hint.params)
	m.hint, m.made = hint, key
	return key, version, err
}

func (h keyHint) equal(other keyHint) bool {
	return h.kind == other.kind && h.salt == other.salt && bytes.Equal(h.params, other.params)
}

// update takes what the KDC says about the first of its keys that is of one of the kinds. known is false if it says
// nothing.
func (h *keyHint) update(offered types.PADataSequence, kinds []int32) (known bool, err error) {
	for _, pa := range offered {
		if pa.PADataType != patype.PA_ETYPE_INFO2 {
			continue
		}
		infos, err := pa.GetETypeInfo2()
		if err != nil {
			return false, errReply
		}
		for _, info := range infos {
			if slices.Contains(kinds, info.EType) {
				h.kind, h.params = info.EType, info.S2KParams
				if info.Salt != "" {
					h.salt = info.Salt
				}
				return true, nil
			}
		}
		return false, errNoType
	}
	return false, nil
}

// proof is the time, encrypted with the client's key.
func (r *requester) proof(m *keyMaker, hint keyHint) (types.PAData, error) {
	key, version, err := m.key(hint, 0)
	if err != nil {
		return types.PAData{}, err
	}
	now := r.now().UTC()
	stamp, err := asn1.Marshal(types.PAEncTSEnc{PATimestamp: now.Truncate(time.Second), PAUSec: now.Nanosecond() / 1000})
	if err != nil {
		return types.PAData{}, err
	}
	sealed, err := encrypt(stamp, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return types.PAData{}, err
	}
	value, err := sealed.Marshal()
	return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}, err
}

// maxRealms bounds how many KDCs refer to each other.
const maxRealms = 5

// forServer gets a ticket for a server with one for the KDC of the client's realm. A server in another realm needs a
// ticket for the KDC of that realm, which the KDC of the client's gives, or one on the way.
func (r *requester) forServer(ctx context.Context, granting *ticket, server principalName) (*ticket, error) {
	at := r.client.realm
	for range maxRealms {
		want := server
		if server.realm != at {
			want = ticketGranting(server.realm, at)
		}
		t, err := r.grant(ctx, granting, at, want.service(), r.conf.serviceTypes, flags.Canonicalize)
		if err != nil {
			return nil, err
		}
		switch {
		case t.SName.Equal(server.service()) && server.realm == at:
			return t, nil
		case len(t.SName.NameString) == 2 && t.SName.NameString[0] == "krbtgt" && t.SName.NameString[1] != at:
			if server.realm == at { // the KDC knows better where the server is
				server.realm = t.SName.NameString[1]
			}
			at, granting = t.SName.NameString[1], t
		default:
			return nil, errReply
		}
	}
	return nil, errTooMany
}

// renew renews a ticket for the KDC of the client's realm.
func (r *requester) renew(ctx context.Context, t *ticket) (*ticket, error) {
	kdc := ticketGranting(r.client.realm, r.client.realm).service()
	renewed, err := r.grant(ctx, t, r.client.realm, kdc, r.conf.ticketTypes, flags.Renew, flags.Renewable)
	if err == nil && !renewed.SName.Equal(kdc) {
		err = errReply
	}
	return renewed, err
}

// grant asks the KDC of a realm for a ticket, with another ticket.
func (r *requester) grant(
	ctx context.Context, with *ticket, realm string, sname types.PrincipalName, kinds []int32, options ...int,
) (*ticket, error) {
	request := messages.TGSReq{KDCReqFields: messages.KDCReqFields{
		PVNO: iana.PVNO, MsgType: msgtype.KRB_TGS_REQ, ReqBody: r.body(realm, sname, kinds, options...),
	}}
	body, err := request.ReqBody.Marshal()
	if err != nil {
		return nil, err
	}
	kind, err := typeOf(with.key)
	if err != nil {
		return nil, err
	}
	sum, err := kind.GetChecksumHash(with.key.KeyValue, body, keyusage.TGS_REQ_PA_TGS_REQ_AP_REQ_AUTHENTICATOR_CHKSUM)
	if err != nil {
		return nil, err
	}
	authenticator := newAuthenticator(r.client, r.now())
	authenticator.Cksum = types.Checksum{CksumType: kind.GetHashID(), Checksum: sum}
	proof, err := messages.NewAPReq(with.Ticket, with.key, authenticator)
	if err != nil {
		return nil, err
	}
	value, err := proof.Marshal()
	if err != nil {
		return nil, err
	}
	request.PAData = types.PADataSequence{{PADataType: patype.PA_TGS_REQ, PADataValue: value}}
	var reply messages.TGSRep
	if err := r.exchange(ctx, realm, request.Marshal, reply.Unmarshal); err != nil {
		return nil, err
	}
	if !reply.CName.Equal(request.ReqBody.CName) || reply.CRealm != r.client.realm {
		return nil, errReply
	}
	plain, err := decrypt(reply.EncPart, with.key, keyusage.TGS_REP_ENCPART_SESSION_KEY)
	if err != nil {
		return nil, errNotMine
	}
	return open(reply.Ticket, plain, &request.ReqBody)
}

// open returns the ticket of a reply whose encrypted part is there.
func open(t messages.Ticket, plain []byte, request *messages.KDCReqBody) (*ticket, error) {
	var part messages.EncKDCRepPart
	if err := part.Unmarshal(plain); err != nil {
		return nil, errReply
	}
	if part.Nonce != request.Nonce || part.SRealm != request.Realm || !part.SName.Equal(t.SName) ||
		t.Realm != request.Realm || len(t.SName.NameString) == 0 || !slices.Contains(request.EType, part.Key.KeyType) {
		return nil, errReply
	}
	if _, err := typeOf(part.Key); err != nil {
		return nil, errReply
	}
	if part.StartTime.IsZero() {
		part.StartTime = part.AuthTime
	}
	return &ticket{Ticket: t, key: part.Key, from: part.StartTime, until: part.EndTime, renewable: part.RenewTill}, nil
}

// exchange sends a request to the KDC of a realm, and reads the reply.
func (r *requester) exchange(
	ctx context.Context, realm string, marshal func() ([]byte, error), unmarshal func([]byte) error,
) error {
	request, err := marshal()
	if err != nil {
		return err
	}
	reply, err := r.ask(ctx, r.conf, realm, request)
	if err != nil {
		return err
	}
	var refusal messages.KRBError
	if refusal.Unmarshal(reply) == nil {
		if refusal.ErrorCode == errorcode.KRB_AP_ERR_SKEW {
			return &skewError{refusal.STime.Sub(r.now()), r.conf.clockSkew, refusal}
		}
		return refusal
	}
	if err := unmarshal(reply); err != nil {
		return fmt.Errorf("%w: %w", errReply, err)
	}
	return nil
}

// newAuthenticator returns what proves, encrypted with the key of a ticket, that a client sends it now.
func newAuthenticator(client principalName, now time.Time) types.Authenticator {
	now = now.UTC()
	return types.Authenticator{
		AVNO: iana.PVNO, CRealm: client.realm, CName: client.client(),
		CTime: now.Truncate(time.Second), Cusec: now.Nanosecond() / 1000, SeqNumber: int64(nonce() & 0x3fffffff),
	}
}
