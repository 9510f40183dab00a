package kerberos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// fakeKDC answers without a network. It has one key for all sessions.
type fakeKDC struct {
	kind    int32 // of all keys
	version int   // of the clients' keys

	mu         sync.Mutex
	now        time.Time // of the client too, unless skew says otherwise
	skew       time.Duration
	passwords  map[string]string // by the principals of clients
	services   []string          // principals; krbtgt/B@A refers to realm B
	life       time.Duration
	away       bool
	refuse     map[string]int32 // the next answer, "AS" or "TGS", is this error
	change     func(kind string, rep *messages.EncKDCRepPart)
	rename     func(kind string, rep *messages.KDCRepFields)
	as, tgs    int // tickets given
	renewals   int
	noPreAuth  bool
	iterations []byte
	session    types.EncryptionKey
}

func newFakeKDC() *fakeKDC {
	return &fakeKDC{
		kind: etypeID.AES256_CTS_HMAC_SHA1_96, version: 1, now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC),
		passwords: map[string]string{"alice@EXAMPLE.TEST": "secret"},
		services:  []string{"zookeeper/localhost@EXAMPLE.TEST"}, life: 10 * time.Hour,
		refuse: make(map[string]int32), session: keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 3),
	}
}

// set changes the KDC.
func (k *fakeKDC) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *fakeKDC) time() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now.Add(k.skew)
}

// counts returns how many tickets it has given.
func (k *fakeKDC) counts() [2]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return [2]int{k.as, k.tgs}
}

// use has a mechanism ask this KDC.
func (k *fakeKDC) use(m *Mechanism, err error) *Mechanism {
	if err != nil {
		panic(err)
	}
	m.state.now, m.state.ask = k.time, k.ask
	m.state.resolver = names{}
	return m
}

// names are those of hosts that have an address without a name.
type names map[string]string

func (n names) LookupHost(_ context.Context, host string) ([]string, error) {
	if addr, ok := n[host]; ok {
		return []string{addr}, nil
	}
	return nil, errors.New("no such host")
}

func (n names) LookupAddr(_ context.Context, addr string) ([]string, error) {
	if name, ok := n["reverse "+addr]; ok {
		return []string{name}, nil
	}
	return nil, errors.New("no such address")
}

func (k *fakeKDC) ask(ctx context.Context, _ *config, realm string, request []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if k.away {
		return nil, errNoAnswer
	}
	var as messages.ASReq
	if as.Unmarshal(request) == nil {
		return k.answer("AS", &as.ReqBody, func() ([]byte, int32) { return k.authenticate(&as) })
	}
	var tgs messages.TGSReq
	if err := tgs.Unmarshal(request); err != nil {
		return nil, err
	}
	if tgs.ReqBody.Realm != realm {
		return nil, fmt.Errorf("asked of %s for %s", realm, tgs.ReqBody.Realm)
	}
	return k.answer("TGS", &tgs.ReqBody, func() ([]byte, int32) { return k.grant(&tgs) })
}

// answer returns a reply, or the error with a code.
func (k *fakeKDC) answer(kind string, body *messages.KDCReqBody, do func() ([]byte, int32)) ([]byte, error) {
	var reply []byte
	code := k.refuse[kind]
	delete(k.refuse, kind)
	if code == 0 {
		reply, code = do()
	}
	if code == 0 {
		return reply, nil
	}
	refusal := messages.NewKRBError(body.SName, body.Realm, code, "")
	refusal.STime = k.now.Truncate(time.Second)
	if code == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		var err error
		if refusal.EData, err = asn1.Marshal(k.hints()); err != nil {
			return nil, err
		}
	}
	return refusal.Marshal()
}

// hints say which keys a client has.
func (k *fakeKDC) hints() types.PADataSequence {
	info, err := asn1.Marshal(types.ETypeInfo2{{EType: k.kind, Salt: "salt", S2KParams: k.iterations}})
	if err != nil {
		panic(err)
	}
	return types.PADataSequence{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: info}}
}

func (k *fakeKDC) authenticate(r *messages.ASReq) ([]byte, int32) {
	secret, ok := k.passwords[r.ReqBody.CName.PrincipalNameString()+"@"+r.ReqBody.Realm]
	if !ok {
		return nil, errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN
	}
	key := fakeKey(secret, k.kind)
	var err error
	if !k.noPreAuth {
		if len(r.PAData) == 0 {
			return nil, errorcode.KDC_ERR_PREAUTH_REQUIRED
		}
		var sealed types.EncryptedData
		var stamp types.PAEncTSEnc
		plain := []byte(nil)
		if err = sealed.Unmarshal(r.PAData[0].PADataValue); err == nil {
			plain, err = decrypt(sealed, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP)
		}
		if err == nil {
			err = stamp.Unmarshal(plain)
		}
		if err != nil {
			return nil, errorcode.KDC_ERR_PREAUTH_FAILED
		}
		if k.now.Sub(stamp.PATimestamp).Abs() > 5*time.Minute {
			return nil, errorcode.KRB_AP_ERR_SKEW
		}
	}
	k.as++
	part := k.part("AS", &r.ReqBody)
	plain, err := part.Marshal()
	if err != nil {
		panic(err)
	}
	sealed, err := encrypt(plain, key, keyusage.AS_REP_ENCPART, k.version)
	if err != nil {
		panic(err)
	}
	rep := messages.ASRep{KDCRepFields: messages.KDCRepFields{
		PVNO: 5, MsgType: 11, PAData: k.hints(), CRealm: r.ReqBody.Realm, CName: r.ReqBody.CName,
		Ticket: fakeTicket(r.ReqBody.Realm, r.ReqBody.SName), EncPart: sealed,
	}}
	if k.rename != nil {
		k.rename("AS", &rep.KDCRepFields)
	}
	b, err := rep.Marshal()
	if err != nil {
		panic(err)
	}
	return b, 0
}

func (k *fakeKDC) grant(r *messages.TGSReq) ([]byte, int32) {
	var proof messages.APReq
	if proof.Unmarshal(r.PAData[0].PADataValue) != nil || proof.DecryptAuthenticator(k.session) != nil {
		return nil, errorcode.KRB_AP_ERR_BAD_INTEGRITY
	}
	if types.IsFlagSet(&r.ReqBody.KDCOptions, flags.Renew) {
		k.renewals++
	} else {
		server := r.ReqBody.SName.PrincipalNameString() + "@" + r.ReqBody.Realm
		referral := ""
		for _, s := range k.services {
			if s == server {
				referral = ""
				break
			}
			if strings.HasPrefix(s, "krbtgt/") && strings.HasSuffix(s, "@"+r.ReqBody.Realm) {
				referral = strings.TrimSuffix(s, "@"+r.ReqBody.Realm)
			} else {
				continue
			}
		}
		if referral != "" {
			r.ReqBody.SName.NameString = strings.Split(referral, "/")
		} else if !strings.Contains(strings.Join(k.services, " ")+" ", server+" ") {
			return nil, errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN
		}
	}
	k.tgs++
	part := k.part("TGS", &r.ReqBody)
	plain, err := part.Marshal()
	if err != nil {
		panic(err)
	}
	sealed, err := encrypt(plain, k.session, keyusage.TGS_REP_ENCPART_SESSION_KEY, 0)
	if err != nil {
		panic(err)
	}
	rep := messages.TGSRep{KDCRepFields: messages.KDCRepFields{
		PVNO: 5, MsgType: 13, CRealm: proof.Authenticator.CRealm, CName: r.ReqBody.CName,
		Ticket: fakeTicket(r.ReqBody.Realm, r.ReqBody.SName), EncPart: sealed,
	}}
	if k.rename != nil {
		k.rename("TGS", &rep.KDCRepFields)
	}
	b, err := rep.Marshal()
	if err != nil {
		panic(err)
	}
	return b, 0
}

func (k *fakeKDC) part(kind string, r *messages.KDCReqBody) messages.EncKDCRepPart {
	now := k.now.Truncate(time.Second)
	part := messages.EncKDCRepPart{
		Key: k.session, Nonce: r.Nonce, Flags: types.NewKrbFlags(), AuthTime: now, StartTime: now, EndTime: now.Add(k.life),
		RenewTill: now.Add(2 * k.life), SRealm: r.Realm, SName: r.SName,
		LastReqs: []messages.LastReq{{LRType: 0, LRValue: now}},
	}
	if k.change != nil {
		k.change(kind, &part)
	}
	return part
}

func fakeTicket(realm string, sname types.PrincipalName) messages.Ticket {
	return messages.Ticket{
		TktVNO: 5, Realm: realm, SName: sname,
		EncPart: types.EncryptedData{EType: 18, KVNO: 1, Cipher: make([]byte, 64)},
	}
}

var fakeKeys sync.Map // to make one takes long

// fakeKey returns the key of a password.
func fakeKey(password string, kind int32) types.EncryptionKey {
	name := fmt.Sprint(kind, password)
	if key, ok := fakeKeys.Load(name); ok {
		return key.(types.EncryptionKey)
	}
	key, err := keyOfPassword(password, kind, "salt", "")
	if err != nil {
		panic(err)
	}
	fakeKeys.Store(name, key)
	return key
}

// write writes a file of a test.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// testConfig is a krb5.conf with a realm.
func testConfig(t *testing.T) Option {
	t.Helper()
	return WithConfigFile(write(t, "krb5.conf", []byte("[libdefaults]\ndefault_realm = EXAMPLE.TEST\n")))
}

// keytabOf returns a keytab with a key of alice that the KDC takes for a password.
func keytabOf(t *testing.T, versions map[uint8]string) []byte {
	t.Helper()
	kt := keytab.New()
	for version := range maps.Keys(versions) {
		err := kt.AddEntry("alice", "EXAMPLE.TEST", "", time.Unix(1, 0), version, etypeID.RC4_HMAC)
		if err != nil {
			t.Fatal(err)
		}
		kt.Entries[len(kt.Entries)-1].Key = fakeKey(versions[version], etypeID.AES256_CTS_HMAC_SHA1_96)
	}
	b, err := kt.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
