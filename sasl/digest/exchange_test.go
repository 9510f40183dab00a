package digest

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

// The example of RFC 2831, section 4.
func TestExampleOfRFC2831(t *testing.T) {
	t.Parallel()
	e := &exchange{user: "chris", password: "secret", uri: "imap/elwood.innosoft.com", nonce: "OA6MHXh6VqTrRk"}
	reply, done, err := e.Next(nil)
	if reply == nil || len(reply) > 0 || done || err != nil {
		t.Fatalf("the first token is %q, %v, %v", reply, done, err)
	}
	reply, done, err = e.Next([]byte(`realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",` +
		`algorithm=md5-sess,charset=utf-8`))
	if done || err != nil {
		t.Fatal(done, err)
	}
	const want = `charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,` +
		`cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",maxbuf=65536,` +
		`response=d388dad90d4bbd760a152321f2143af7,qop=auth`
	if string(reply) != want {
		t.Errorf("the response is\n%s, want\n%s", reply, want)
	}
	if reply, done, err = e.Next([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffd")); reply != nil || !done || err != nil {
		t.Errorf("the end is %q, %v, %v", reply, done, err)
	}
}

func TestServerThatDoesNotKnowThePassword(t *testing.T) {
	t.Parallel()
	for _, proof := range []string{
		"", "rspauth=", "rspauth=ea40f60335c427b5527b84dbabcdfffc", "rspauth=a,rspauth=a", `rspauth="`,
		"twice",
	} {
		e := &exchange{user: "chris", password: "secret", uri: "imap/elwood.innosoft.com", nonce: "OA6MHXh6VqTrRk"}
		for _, token := range []string{"", `realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",algorithm=md5-sess`} {
			if _, _, err := e.Next([]byte(token)); err != nil {
				t.Fatal(err)
			}
		}
		if proof == "twice" { // two answers are none, also if the first one is right
			proof = "rspauth=" + e.proof + ",rspauth=a"
		}
		if _, _, err := e.Next([]byte(proof)); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%q: %v", proof, err)
		}
	}
}

func TestChallenges(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, challenge string
		has             string // part of the response
		wrong           string // part of the error
	}{
		{
			name: "of ZooKeeper", challenge: `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`,
			has: `username="zoë",realm="zk-sasl-md5"`,
		},
		{name: "no realm", challenge: `nonce="n",algorithm=md5-sess`, has: `realm=""`},
		{name: "two realms", challenge: `realm="a",realm="b",nonce="n",algorithm=md5-sess`, has: `realm="a"`},
		{name: "spaces and empty elements", challenge: " ,, nonce = \"n\" ,\t,algorithm= md5-sess,", has: `nonce="n"`},
		{name: "quotes", challenge: `realm="a\"b\\c",nonce="n",algorithm=md5-sess`, has: `realm="a\"b\\c"`},
		{name: "a comma in quotes", challenge: `realm="a,b",nonce="n",algorithm=md5-sess`, has: `realm="a,b"`},
		{name: "qop of several", challenge: `nonce="n",algorithm=md5-sess,qop="auth-int, auth"`, has: "qop=auth"},
		{name: "without UTF-8", challenge: `nonce="n",algorithm=md5-sess`, has: "username=\"zo\xeb\""},
		{name: "empty", challenge: "", wrong: "one nonce"},
		{name: "two nonces", challenge: `nonce="a",nonce="b",algorithm=md5-sess`, wrong: "one nonce"},
		{name: "another algorithm", challenge: `nonce="n",algorithm=md5`, wrong: "md5-sess"},
		{name: "encryption", challenge: `nonce="n",algorithm=md5-sess,qop="auth-conf"`, wrong: "signed or encrypted"},
		{name: "no value", challenge: "nonce", wrong: "name=value"},
		{name: "no name", challenge: "=n", wrong: "name=value"},
		{name: "no comma", challenge: `nonce="n"algorithm=md5-sess`, wrong: "name=value"},
		{name: "no end", challenge: `nonce="n`, wrong: "does not end"},
		{name: "no end behind a backslash", challenge: `nonce="n\`, wrong: "does not end"},
		{name: "a long one", challenge: strings.Repeat("a=b,", 1000), wrong: "2,048"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := &exchange{user: "zoë", password: "pä ss", uri: service, nonce: "c", step: 1}
			reply, _, err := e.Next([]byte(tt.challenge))
			switch {
			case tt.wrong != "":
				if !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("the error is %v", err)
				}
			case err != nil:
				t.Error(err)
			case !strings.Contains(string(reply), tt.has):
				t.Errorf("the response is %s", reply)
			}
		})
	}
}

// What Java hashes: ISO 8859-1 if it has all characters, whether or not the server knows UTF-8.
func TestEncodings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, bytes string
		hasUTF8, ok bool
	}{
		{"bob", "bob", true, true},
		{"zoë", "zo\xeb", true, true},
		{"zoë", "zo\xeb", false, true},
		{"Łukasz", "Łukasz", true, true},
		{"ÿ€", "ÿ€", true, true},
		{"Łukasz", "", false, false},
		{"\xff", "", true, false},
	}
	for _, tt := range tests {
		if got, err := encode(tt.text, tt.hasUTF8); got != tt.bytes || (err == nil) != tt.ok {
			t.Errorf("encode(%q, %v) = %q, %v", tt.text, tt.hasUTF8, got, err)
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`)
	f.Add(`realm="a\"b\\c",nonce="n" ,, algorithm=md5-sess,qop="auth, auth-int"`)
	f.Add("rspauth=ea40f60335c427b5527b84dbabcdfffd")
	f.Fuzz(func(t *testing.T, token string) {
		e := &exchange{user: "zoë", password: "secret", uri: service, nonce: "c", step: 1}
		reply, _, err := e.Next([]byte(token))
		if (reply == nil) != (err != nil) || err != nil && !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%q, %v", reply, err)
		}
		if err == nil && e.proof == "" {
			t.Error("any proof would do")
		}
		if err == nil {
			if _, err := parseDirectives(string(reply)); err != nil && len(reply) <= maxToken {
				t.Errorf("the response %q: %v", reply, err)
			}
		}
		if _, _, err := e.Next([]byte(token)); err == nil {
			t.Errorf("the proof %q", token)
		}
	})
}
