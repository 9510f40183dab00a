package kerberos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// skewError is for clocks that differ by too much.
type skewError struct {
	skew, most time.Duration // of the other clock
	cause      error
}

func (e *skewError) Error() string {
	return fmt.Sprintf("the clock of the KDC is %v from ours, and at most %v is allowed: set the clocks, as by NTP",
		e.skew.Round(time.Second), e.most)
}

func (e *skewError) Unwrap() error { return e.cause }

// fault is what went wrong with a login, for whom, and whether the same will happen again.
func fault(who string, final bool, what string, err error) error {
	text := fmt.Sprintf("Kerberos: %s: %s", who, what)
	switch {
	case !final:
		return fmt.Errorf("%s: %w", text, err)
	case err == nil:
		return fmt.Errorf("%w: %s", zk.ErrAuthFailed, text)
	}
	return fmt.Errorf("%w: %s: %w", zk.ErrAuthFailed, text, err)
}

// refused is the fault of a login that did not agree with the server.
func (e *exchange) refused(what string, err error) error {
	return fault(fmt.Sprintf("%s at %s", e.client, e.server), true, what, err)
}

// explain says what to do about the error of a request to a KDC. server is nil for the first ticket.
func (s *state) explain(err error, client principalName, server *principalName) error {
	who := client.String()
	var refusal messages.KRBError
	var skew *skewError
	switch {
	case errors.As(err, &skew):
		return fault(who, true, "clock skew", err)
	case errors.Is(err, errNoAnswer), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault(who, false, "no ticket", err)
	case errors.Is(err, errNoKDC):
		return fault(who, true, "name its KDC in krb5.conf", err)
	case errors.Is(err, errNotMine) && server == nil:
		return fault(who, true, s.source.wrong, err)
	case !errors.As(err, &refusal):
		return fault(who, true, "no ticket", err)
	}
	what, final := "the KDC refuses", true
	switch refusal.ErrorCode {
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		what = "the KDC does not know this principal: look at its name and realm, or add it to the KDC"
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		if server != nil {
			what = fmt.Sprintf("the KDC does not know the server %s: look at the host in the connect string, "+
				"WithServicePrincipal, WithServiceRealm and WithoutCanonicalHost", server)
		}
	case errorcode.KDC_ERR_PREAUTH_FAILED, errorcode.KRB_AP_ERR_BAD_INTEGRITY:
		if server == nil {
			what = s.source.wrong
		}
	case errorcode.KDC_ERR_KEY_EXPIRED:
		what = "its password has expired: change it, as with kpasswd"
	case errorcode.KDC_ERR_CLIENT_REVOKED, errorcode.KDC_ERR_NAME_EXP:
		what = "it is locked, disabled or expired at the KDC"
	case errorcode.KDC_ERR_ETYPE_NOSUPP, errorcode.KDC_ERR_NULL_KEY:
		what = "there is no encryption type in common: the principals need keys for AES"
	case errorcode.KDC_ERR_WRONG_REALM:
		what = "the KDC has another realm: look at the realm of the principal"
	case errorcode.KRB_AP_ERR_TKT_EXPIRED, errorcode.KRB_AP_ERR_TKT_NYV:
		what = "the ticket is not valid now: get another one, as with kinit, and look at the clocks"
	case errorcode.KDC_ERR_SVC_UNAVAILABLE, errorcode.KRB_ERR_GENERIC, errorcode.KRB_ERR_RESPONSE_TOO_BIG,
		errorcode.KRB_AP_ERR_REPEAT:
		final = false
	}
	return fault(who, final, what, err)
}
