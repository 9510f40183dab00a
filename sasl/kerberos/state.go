package kerberos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"

	"github.com/gocurator/curator/sasl"
)

// state is what all logins of a mechanism have in common.
type state struct {
	settings
	source    *source
	principal *principalName // nil if it is that of the cache

	lock    chan struct{} // has an element while one of them has the rest
	account *account      // nil before the first login
	// quiet is the time until which KDCs that did not answer are not asked for what can wait.
	quiet time.Time
}

// quietTime is how long KDCs that did not answer are left alone as long as there is a valid ticket: logins would wait
// for them one after the other.
const quietTime = 30 * time.Second

// source is where the secret of a client is.
type source struct {
	name       string
	unreadable string // what is wrong if it cannot be read
	wrong      string // what is wrong if the KDC does not take it
	isCache    bool
	read       func(who principalName) (*account, error) // reads it anew
}

// account is a client with its secret, and the tickets that came of that.
type account struct {
	client   principalName
	secret   secret // nil if it is a cache
	cache    []byte // the file
	granting *ticket
	services map[string]*ticket
}

// isSame reports whether what was read is what it was before.
func (a *account) isSame(read *account) bool {
	if a == nil || !a.client.equal(read.client) || !bytes.Equal(a.cache, read.cache) {
		return false
	}
	before, ok := a.secret.(keys)
	now, _ := read.secret.(keys)
	return !ok || before.equal(now)
}

func readKeytab(file string, who principalName) (*account, error) {
	b, err := readFile(file)
	if err != nil {
		return nil, err
	}
	found, err := parseKeytab(b, who)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &account{client: who, secret: found}, nil
}

// errNoFile is for caches that only MIT's library reads.
var errNoFile = errors.New("want a FILE cache: set KRB5CCNAME or default_ccache_name to FILE:/path, and log in again")

// cacheFile returns the file of a cache, or of the cache of the environment.
func cacheFile(name string) (string, error) {
	if name == "" {
		name = os.Getenv("KRB5CCNAME")
	}
	if name == "" {
		return fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()), nil
	}
	kind, file, ok := strings.Cut(name, ":")
	switch {
	case !ok || strings.ContainsAny(kind, "/.") || len(kind) < 2:
		return name, nil
	case kind == "FILE":
		return file, nil
	}
	return "", fmt.Errorf("ticket cache %s: %w", name, errNoFile)
}

func readCache(name string, who principalName) (*account, error) {
	file, err := cacheFile(name)
	if err != nil {
		return nil, err
	}
	b, err := readFile(file)
	if err != nil {
		return nil, err
	}
	client, t, err := parseCache(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(who.parts) > 0 && !client.equal(who) {
		return nil, fmt.Errorf("%s is of %s", file, client)
	}
	return &account{client: client, cache: b, granting: t}, nil
}

// describe names the client as far as it is known.
func (s *state) describe() string {
	if s.principal == nil {
		return s.source.name
	}
	return s.principal.String() + ", " + s.source.name
}

// start begins the login to the server with a host in its principal.
func (s *state) start(ctx context.Context, host string) (sasl.Exchange, error) {
	conf, err := readConfig(s.configFiles())
	if err != nil {
		return nil, fault(s.describe(), true, "configuration", err)
	}
	if err := s.identify(conf); err != nil {
		return nil, err
	}
	client := s.account.client
	server := s.servicePrincipal(conf, host, client.realm)
	t, err := s.ticketFor(ctx, &requester{conf, client, s.now, s.ask}, server)
	if err != nil {
		return nil, err
	}
	return newExchange(client, server, t, s.mutual, s.now), nil
}

// configFiles returns the files to read, and whether they may be missing.
func (s *state) configFiles() (files []string, optional bool) {
	if s.configFile != "" {
		return []string{s.configFile}, false
	}
	if env := os.Getenv("KRB5_CONFIG"); env != "" {
		return filepath.SplitList(env), false
	}
	return []string{defaultConfigFile}, true
}

// identify reads the secret anew. If that fails, as while somebody writes the file, the one from before counts as long
// as its ticket is valid.
func (s *state) identify(conf *config) error {
	var who principalName
	if s.principal != nil {
		who = s.principal.withRealm(conf.defaultRealm)
		if who.realm == "" {
			return fault(s.describe(), true, "give the principal a realm, or krb5.conf a default_realm", nil)
		}
	}
	read, err := s.source.read(who)
	switch {
	case err != nil && (s.account == nil || !s.account.granting.isValid(s.now())):
		return fault(s.describe(), true, s.source.unreadable, err)
	case err == nil && !s.account.isSame(read):
		read.services = make(map[string]*ticket)
		s.account = read
	}
	return nil
}

// ticketFor returns a ticket for a server. One that a server has not answered to may be for a key that it has no more:
// it is replaced.
func (s *state) ticketFor(ctx context.Context, r *requester, server principalName) (*ticket, error) {
	now := s.now()
	known := s.account.services[server.String()]
	if known.isFresh(now) && known.unproven.Load() == 0 || known.isValid(now) && now.Before(s.quiet) {
		return known, nil
	}
	if known.isValid(now) {
		var cancel context.CancelFunc
		ctx, cancel = aside(ctx)
		defer cancel()
	}
	t, err := s.newTicket(ctx, r, server)
	switch {
	case err == nil:
		maps.DeleteFunc(s.account.services, func(_ string, t *ticket) bool { return !t.isValid(s.now()) })
		s.account.services[server.String()] = t
	case !errors.Is(err, zk.ErrAuthFailed) && known.isValid(now): // it does without the KDC
		s.quiet = now.Add(quietTime)
		return known, nil
	}
	return t, err
}

// aside returns a context for what can fail. It leaves most of the time to the rest of the login.
func aside(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := kdcTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/3)
	}
	return context.WithTimeout(ctx, limit)
}

func (s *state) newTicket(ctx context.Context, r *requester, server principalName) (*ticket, error) {
	granting, isNew, err := s.grantingTicket(ctx, r)
	if err != nil {
		return nil, s.explain(err, r.client, nil)
	}
	t, err := r.forServer(ctx, granting, server)
	var refusal messages.KRBError
	if errors.As(err, &refusal) && refusal.ErrorCode != errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN &&
		!isNew && s.account.secret != nil { // the KDC does not know the ticket any more
		s.account.granting = nil
		if granting, _, err = s.grantingTicket(ctx, r); err != nil {
			return nil, s.explain(err, r.client, nil)
		}
		t, err = r.forServer(ctx, granting, server)
	}
	if err != nil {
		return nil, s.explain(err, r.client, &server)
	}
	return t, nil
}

// expiredError is for a ticket of a cache that has ended.
type expiredError struct{ until time.Time }

func (e *expiredError) Error() string {
	return fmt.Sprintf("the ticket of the cache has expired at %s: get another one, as with kinit",
		e.until.Format(time.RFC3339))
}

// grantingTicket returns the ticket for the KDC, and whether it is new. Late in its life it is replaced; if no KDC
// answers it is used as long as it is valid.
func (s *state) grantingTicket(ctx context.Context, r *requester) (t *ticket, isNew bool, err error) {
	t = s.account.granting
	now := s.now()
	if t.isFresh(now) {
		return t, false, nil
	}
	var replacement *ticket
	switch {
	case s.account.secret != nil:
		replacement, err = r.authenticate(ctx, s.account.secret)
	case !t.isValid(now):
		return nil, false, &expiredError{t.until}
	case now.Before(t.renewable):
		replacement, err = r.renew(ctx, t)
	}
	switch {
	case replacement != nil && err == nil:
		s.account.granting = replacement
		return replacement, true, nil
	case t.isValid(now) && (s.account.secret == nil || errors.Is(err, errNoAnswer)):
		return t, false, nil
	}
	return nil, false, err
}
