package kerberos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// cacheBytes is a ticket cache of alice, with a ticket of a lifetime for each server.
func cacheBytes(t *testing.T, version byte, life time.Duration, from time.Time, servers ...principalName) []byte {
	t.Helper()
	b := []byte{5, version}
	u16 := func(n int) { b = binary.BigEndian.AppendUint16(b, uint16(n)) }
	u32 := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	data := func(d []byte) { u32(len(d)); b = append(b, d...) }
	name := func(p principalName) {
		u32(1)
		u32(len(p.parts))
		data([]byte(p.realm))
		for _, part := range p.parts {
			data([]byte(part))
		}
	}
	if version == 4 {
		u16(12)
		u16(1)
		u16(8)
		b = append(b, make([]byte, 8)...)
	}
	name(testClient)
	for _, server := range servers {
		name(testClient)
		name(server)
		key := keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 3)
		u16(int(key.KeyType))
		if version == 3 {
			u16(int(key.KeyType))
		}
		data(key.KeyValue)
		for _, at := range []time.Time{from, from, from.Add(life), from.Add(2 * life)} {
			u32(int(at.Unix()))
		}
		b = append(b, make([]byte, 1+4)...)
		u32(1)
		u16(2)
		data([]byte{127, 0, 0, 1})
		u32(0)
		raw := []byte("a setting")
		if server.parts[0] == "krbtgt" {
			ticket := fakeTicket(server.realm, server.service())
			var err error
			if raw, err = ticket.Marshal(); err != nil {
				t.Fatal(err)
			}
		}
		data(raw)
		data(nil)
	}
	return b
}

var (
	testGranting = ticketGranting("EXAMPLE.TEST", "EXAMPLE.TEST")
	testSetting  = principalName{[]string{"krb5_ccache_conf_data", "fast_avail"}, "X-CACHECONF:"}
)

func TestCache(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	file := write(t, "cache", cacheBytes(t, 4, 10*time.Hour, k.now, testSetting, testGranting))
	m := k.use(FromCache(file, testConfig(t)))
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if e := start(t, m, "localhost"); e.client.String() != alice {
		t.Errorf("the client is %s", e.client)
	}
	check := func(tgs, renewals int) {
		t.Helper()
		if k.as != 0 || k.tgs != tgs || k.renewals != renewals {
			t.Errorf("%d tickets for a password, %d for a ticket, %d of them renewed; want 0, %d, %d",
				k.as, k.tgs, k.renewals, tgs, renewals)
		}
	}
	check(1, 0)
	put(nil) // kinit is writing it
	start(t, m, "localhost")
	check(1, 0)
	put(cacheBytes(t, 3, 10*time.Hour, k.now, testGranting, testSetting)) // another one
	start(t, m, "localhost")
	check(2, 0)
	k.set(func() { k.now = k.now.Add(9 * time.Hour) })
	start(t, m, "localhost")
	check(4, 1)
	k.set(func() { k.now = k.now.Add(30 * time.Hour) })
	startFails(t, m, true, "cache has expired at 2026-11-27T07:00:00Z", "kinit", alice)
	put(nil)
	startFails(t, m, true, "kinit", file, "being written")
	put(cacheBytes(t, 4, 10*time.Hour, k.now, testSetting))
	startFails(t, m, true, "kinit", file, "no ticket for the KDC")
	put(cacheBytes(t, 4, 10*time.Hour, k.now, testGranting))
	start(t, m, "localhost")
	check(5, 1)
	k.set(func() { k.now, k.refuse["TGS"] = k.now.Add(9*time.Hour), 12 }) // it is not renewed, and does as it is
	start(t, m, "localhost")
	check(6, 1)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	k.set(func() { k.now = k.now.Add(2 * time.Hour) })
	startFails(t, m, true, "kinit", file, "no such file")

	other := k.use(fromCache(file, "bob@EXAMPLE.TEST", []Option{testConfig(t)}))
	put(cacheBytes(t, 4, 10*time.Hour, k.now, testGranting))
	startFails(t, other, true, "bob@EXAMPLE.TEST", file+" is of alice@EXAMPLE.TEST")
}

func TestCacheOfTheEnvironment(t *testing.T) {
	k := newFakeKDC()
	file := write(t, "cache", cacheBytes(t, 4, 10*time.Hour, k.now, testGranting))
	m := k.use(FromCache("", testConfig(t)))
	for _, name := range []string{file, "FILE:" + file} {
		t.Setenv("KRB5CCNAME", name)
		start(t, m, "localhost")
	}
	t.Setenv("KRB5CCNAME", "KCM:0")
	fresh := k.use(FromCache("", testConfig(t)))
	startFails(t, fresh, true, "KCM:0", "FILE cache")
	t.Setenv("KRB5CCNAME", "")
	if name, err := cacheFile(""); name != fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()) || err != nil {
		t.Errorf("%s, %v", name, err)
	}
}

// A cache that ends anywhere is an error, or has less.
func TestCacheThatIsCutOff(t *testing.T) {
	t.Parallel()
	for _, version := range []byte{3, 4} {
		b := cacheBytes(t, version, time.Hour, time.Unix(1e9, 0), testGranting, testSetting)
		whole := 0
		for n := range b {
			if _, ticket, err := parseCache(b[:n]); err == nil && ticket.SName.NameString[0] == "krbtgt" {
				whole++
			} else if err == nil {
				t.Errorf("%d bytes: %v", n, ticket)
			}
		}
		if whole != 1 { // before the setting
			t.Errorf("version %d: %d parts have a ticket, want 1", version, whole)
		}
	}
}

func FuzzCache(f *testing.F) {
	for _, version := range []byte{3, 4} {
		f.Add(cacheBytes(&testing.T{}, version, time.Hour, time.Unix(1e9, 0), testSetting, testGranting))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, found, err := parseCache(b)
		if (found == nil) != (err != nil) || found != nil && len(found.SName.NameString) == 0 {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// FuzzKeytab checks that errors have nothing of the file.
func FuzzKeytab(f *testing.F) {
	f.Add(keytabOf(&testing.T{}, map[uint8]string{1: "a", 2: "b"}))
	f.Add([]byte{5, 2, 0, 0, 0, 5, 's', 'e', 'c', 'r', 'e', 't'})
	f.Fuzz(func(t *testing.T, b []byte) {
		found, err := parseKeytab(b, testClient)
		if (len(found) == 0) != (err != nil) {
			t.Errorf("%d keys, %v", len(found), err)
		}
		for _, v := range found {
			if _, err := typeOf(v.key); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestKeytabOfOthers(t *testing.T) {
	t.Parallel()
	b := keytabOf(t, map[uint8]string{1: "a"})
	if _, err := parseKeytab(b, testServer); err == nil || !strings.Contains(err.Error(), testServer.String()) ||
		!strings.Contains(err.Error(), alice) {
		t.Errorf("the error is %v", err)
	}
	for n := range b {
		if _, err := parseKeytab(b[:n], testClient); err == nil {
			t.Errorf("%d bytes of %d have a key", n, len(b))
		} else if bytes.ContainsAny([]byte(err.Error()), string(b[len(b)-10:])) && strings.Contains(err.Error(), "[5 2") {
			t.Errorf("the error has bytes of the file: %v", err)
		}
	}
	if _, err := parseKeytab([]byte{5, 2}, testClient); err == nil {
		t.Error("an empty one has keys")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	put("d/crypto-policies",
		"[libdefaults]\npermitted_enctypes = aes256-cts-hmac-sha1-96 rc4-hmac des3-cbc-sha1 unknown\n")
	put("d/realms.conf", "[realms]\n C.TEST = {\n  kdc = c1\n }\n")
	put("d/.hidden.conf", "nonsense")
	put("d/backup~", "nonsense")
	first := put("krb5.conf", `# a comment
includedir `+dir+`/d
include `+dir+`/d/realms.conf
[libdefaults]
	default_realm = A.TEST
	default_realm = B.TEST
	dns_lookup_kdc = no
	clockskew = 120
	ticket_lifetime = 1d 2h
	; and another
[realms]
	A.TEST = {
		kdc = a1.test
		kdc = a2.test:1088
		kdc = [::1]
		kdc = [::1]:99
		admin_server = a1.test
		auth_to_local_names = {
			fred = freddy
		}
		auth_to_local = RULE:[1:$1@$0](.*@A\.TEST)s/@.*//
	}
[appdefaults]
	pam = {
		debug = false
	}
[domain_realm]
	.a.test = A.TEST
	.deep.a.test = DEEP.TEST
	host.deep.a.test = "HOST.TEST"
`)
	second := put("more.conf", "[libdefaults]\ndefault_realm = C.TEST\n[realms]\nB.TEST = {\nkdc = b1\n}\n")
	c, err := readConfig([]string{first, second}, false)
	if err != nil {
		t.Fatal(err)
	}
	if c.defaultRealm != "A.TEST" || c.dnsLookupKDC || c.clockSkew != 2*time.Minute || c.ticketLifetime != 26*time.Hour {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(c.ticketTypes, []int32{18, 23}) || !slices.Equal(c.serviceTypes, []int32{18}) {
		t.Errorf("types %v, %v", c.ticketTypes, c.serviceTypes)
	}
	for realm, want := range map[string]string{
		"A.TEST": "[a1.test:88 a2.test:1088 [::1]:88 [::1]:99]",
		"B.TEST": "[b1:88]", "C.TEST": "[c1:88 c1:88]", "D.TEST": "[]",
	} {
		if got := fmt.Sprint(c.kdcs[realm]); got != want {
			t.Errorf("KDCs of %s are %s, want %s", realm, got, want)
		}
	}
	for host, want := range map[string]string{
		"x.a.test": "A.TEST", "X.A.Test": "A.TEST", "x.y.a.test": "A.TEST", "x.deep.a.test": "DEEP.TEST",
		"host.deep.a.test": "HOST.TEST", "a.test": "", "other": "",
	} {
		if got := c.realmOf(host); got != want {
			t.Errorf("realm of %s is %q, want %q", host, got, want)
		}
	}
	c, err = readConfig([]string{filepath.Join(dir, "none")}, true)
	if err != nil || !c.dnsLookupKDC || c.clockSkew != 5*time.Minute || !slices.Equal(c.ticketTypes, aesTypes) {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	if _, err := readConfig([]string{filepath.Join(dir, "none")}, false); !os.IsNotExist(err) {
		t.Errorf("without a file that has to be there: %v", err)
	}
}

func TestConfigsThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"a = b":                                       ":1: want [section]",
		"[libdefaults]\nnonsense":                     ":2: want [section] or name = value",
		"[libdefaults]\n= x":                          ":2: want",
		"[libdefaults":                                ":1: a section",
		"[realms]\nA = {\n[libdefaults]\n":            ":3: a section",
		"[realms]\n}\n":                               ":2: } without {",
		"[realms]\nA = {\n":                           "{ without }",
		"[libdefaults]\nclockskew = soon":             "clockskew = soon: want seconds",
		"[libdefaults]\nticket_lifetime = -1h":        "ticket_lifetime = -1h: want",
		"[libdefaults]\nticket_lifetime = 1:2:3:4":    "want seconds",
		"include /nonexistent/file":                   "no such file",
		"[realms]\n" + strings.Repeat("a = {\n", 100): "too many {",
	} {
		file := write(t, "krb5.conf", []byte(text))
		if c, err := readConfig([]string{file}, true); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	if err := os.WriteFile(loop, []byte("include "+loop+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig([]string{loop}, false); err == nil || !strings.Contains(err.Error(), "include each other") {
		t.Errorf("a file that includes itself: %v", err)
	}
	large := write(t, "krb5.conf", make([]byte, maxFile+1))
	if _, err := readConfig([]string{large}, false); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"36000": 10 * time.Hour, "10h": 10 * time.Hour, "1d": 24 * time.Hour, "7d 0h 0m 0s": 7 * 24 * time.Hour,
		"1d2h3m4s": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"10:30":    10*time.Hour + 30*time.Minute, "1:2:3": time.Hour + 2*time.Minute + 3*time.Second,
		"0": 0, "": -1, "x": -1, "d": -1, "1x": -1, ":": -1, "1d-1h": -1, "99999999999": -1,
	} {
		got, err := parseDuration(text)
		if err != nil {
			got = -1
		}
		if got != want && !(text == "" && got == 0) {
			t.Errorf("%q is %v, want %v, %v", text, got, want, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("[libdefaults]\n a = b\nclockskew = 1d2h\n[realms]\n A = {\n kdc = [::1]\n }\n[domain_realm]\n.a = A\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := &profile{}
		if p.parse("file", []byte(text), func(string) error { return nil }) != nil {
			return
		}
		c, err := p.config()
		if (c == nil) != (err != nil) || c != nil && (c.clockSkew < 0 || c.ticketLifetime < 0) {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
