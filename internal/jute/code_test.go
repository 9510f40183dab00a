package jute_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

var codes = []struct {
	code jute.Code
	num  int32
	name string
	err  error
}{
	{jute.CodeOK, 0, "OK", nil},
	{jute.CodeSystemError, -1, "SYSTEMERROR", jute.ErrSystem},
	{jute.CodeRuntimeInconsistency, -2, "RUNTIMEINCONSISTENCY", jute.ErrRuntimeInconsistency},
	{jute.CodeDataInconsistency, -3, "DATAINCONSISTENCY", jute.ErrDataInconsistency},
	{jute.CodeConnectionLoss, -4, "CONNECTIONLOSS", jute.ErrConnectionLoss},
	{jute.CodeMarshallingError, -5, "MARSHALLINGERROR", jute.ErrMarshalling},
	{jute.CodeUnimplemented, -6, "UNIMPLEMENTED", jute.ErrUnimplemented},
	{jute.CodeOperationTimeout, -7, "OPERATIONTIMEOUT", jute.ErrOperationTimeout},
	{jute.CodeBadArguments, -8, "BADARGUMENTS", zk.ErrBadArguments},
	{jute.CodeUnknownSession, -12, "UNKNOWNSESSION", jute.ErrUnknownSession},
	{jute.CodeNewConfigNoQuorum, -13, "NEWCONFIGNOQUORUM", jute.ErrNewConfigNoQuorum},
	{jute.CodeReconfigInProgress, -14, "RECONFIGINPROGRESS", jute.ErrReconfigInProgress},
	{jute.CodeAPIError, -100, "APIERROR", zk.ErrAPIError},
	{jute.CodeNoNode, -101, "NONODE", zk.ErrNoNode},
	{jute.CodeNoAuth, -102, "NOAUTH", zk.ErrNoAuth},
	{jute.CodeBadVersion, -103, "BADVERSION", zk.ErrBadVersion},
	{jute.CodeNoChildrenForEphemerals, -108, "NOCHILDRENFOREPHEMERALS", zk.ErrNoChildrenForEphemerals},
	{jute.CodeNodeExists, -110, "NODEEXISTS", zk.ErrNodeExists},
	{jute.CodeNotEmpty, -111, "NOTEMPTY", zk.ErrNotEmpty},
	{jute.CodeSessionExpired, -112, "SESSIONEXPIRED", zk.ErrSessionExpired},
	{jute.CodeInvalidCallback, -113, "INVALIDCALLBACK", jute.ErrInvalidCallback},
	{jute.CodeInvalidACL, -114, "INVALIDACL", zk.ErrInvalidACL},
	{jute.CodeAuthFailed, -115, "AUTHFAILED", zk.ErrAuthFailed},
	{jute.CodeClosing, -116, "CLOSING", zk.ErrClosing},
	{jute.CodeNothing, -117, "NOTHING", zk.ErrNothing},
	{jute.CodeSessionMoved, -118, "SESSIONMOVED", zk.ErrSessionMoved},
	{jute.CodeNotReadOnly, -119, "NOTREADONLY", jute.ErrNotReadOnly},
	{jute.CodeEphemeralOnLocalSession, -120, "EPHEMERALONLOCALSESSION", jute.ErrEphemeralOnLocalSession},
	{jute.CodeNoWatcher, -121, "NOWATCHER", jute.ErrNoWatcher},
	{jute.CodeRequestTimeout, -122, "REQUESTTIMEOUT", jute.ErrRequestTimeout},
	{jute.CodeReconfigDisabled, -123, "RECONFIGDISABLED", zk.ErrReconfigDisabled},
	{jute.CodeSessionClosedRequireSASL, -124, "SESSIONCLOSEDREQUIRESASLAUTH", jute.ErrSessionClosedRequireSASL},
	{jute.CodeQuotaExceeded, -125, "QUOTAEXCEEDED", jute.ErrQuotaExceeded},
	{jute.CodeThrottledOp, -127, "THROTTLEDOP", jute.ErrThrottledOp},
}

func TestCodeHasItsNumberNameAndError(t *testing.T) {
	for _, tt := range codes {
		t.Run(tt.name, func(t *testing.T) {
			if int32(tt.code) != tt.num {
				t.Errorf("number is %d, want %d", tt.code, tt.num)
			}
			if got := tt.code.String(); got != tt.name {
				t.Errorf("String() = %q, want %q", got, tt.name)
			}
			if got := tt.code.Err(); got != tt.err {
				t.Errorf("Err() = %v, want %v", got, tt.err)
			}
		})
	}
}

func TestCodeOfInvertsErr(t *testing.T) {
	for _, tt := range codes {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := jute.CodeOf(tt.err); !ok || got != tt.code {
				t.Errorf("CodeOf(%v) = %v, %v", tt.err, got, ok)
			}
			if tt.err == nil {
				return
			}
			wrapped := fmt.Errorf("create /a: %w", tt.err)
			if got, ok := jute.CodeOf(wrapped); !ok || got != tt.code {
				t.Errorf("CodeOf(%v) = %v, %v", wrapped, got, ok)
			}
		})
	}
}

func TestUnknownCodeKeepsItsNumber(t *testing.T) {
	for _, code := range []jute.Code{1, 42, -9, -104, -109, -126, -128, -500, math.MaxInt32, math.MinInt32} {
		err := code.Err()
		if !errors.Is(fmt.Errorf("wrapped: %w", err), jute.UnknownCode(code)) {
			t.Errorf("%d: Err() = %v", code, err)
		}
		if got, ok := jute.CodeOf(fmt.Errorf("wrapped: %w", err)); !ok || got != code {
			t.Errorf("%d: CodeOf = %v, %v", code, got, ok)
		}
	}
	if got, want := jute.Code(-500).String(), "-500"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := jute.Code(-500).Err().Error(), "curator: unknown error code -500"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestConnectionLossSpeaksTheVocabularyOfGoZookeeper(t *testing.T) {
	if !errors.Is(fmt.Errorf("get: %w", jute.ErrConnectionLoss), zk.ErrConnectionClosed) {
		t.Error("ErrConnectionLoss is not zk.ErrConnectionClosed")
	}
	if errors.Is(jute.ErrConnectionLoss, zk.ErrSessionExpired) {
		t.Error("ErrConnectionLoss is zk.ErrSessionExpired")
	}
	if got, ok := jute.CodeOf(zk.ErrConnectionClosed); !ok || got != jute.CodeConnectionLoss {
		t.Errorf("CodeOf(zk.ErrConnectionClosed) = %v, %v", got, ok)
	}
	if got, want := jute.ErrConnectionLoss.Error(), "curator: connection loss"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestCodeOfForeignErrorIsNone(t *testing.T) {
	for _, err := range []error{io.EOF, context.Canceled, zk.ErrNoServer, errors.New("other")} {
		if got, ok := jute.CodeOf(err); ok {
			t.Errorf("CodeOf(%v) = %v", err, got)
		}
	}
}

func TestCodeOfJoinedErrorsIsTheOneNearestZero(t *testing.T) {
	err := errors.Join(io.EOF, zk.ErrSessionExpired, zk.ErrNoNode)
	if got, ok := jute.CodeOf(err); !ok || got != jute.CodeNoNode {
		t.Errorf("CodeOf = %v, %v", got, ok)
	}
}

// The server has not begun with a request that it throttles, or that it gets on the connection that a session has left.
func TestCodeHasClassAndEffect(t *testing.T) {
	passing := map[jute.Code]bool{ // whether the request may have taken effect
		jute.CodeConnectionLoss: true, jute.CodeOperationTimeout: true, jute.CodeRequestTimeout: true,
		jute.CodeThrottledOp: false, jute.CodeReconfigInProgress: false,
	}
	session := map[jute.Code]bool{jute.CodeSessionExpired: true, jute.CodeSessionMoved: true}
	for _, tt := range append(codes[1:], struct {
		code jute.Code
		num  int32
		name string
		err  error
	}{-500, -500, "-500", jute.UnknownCode(-500)}) {
		open, passes := passing[tt.code]
		inSession, ofSession := session[tt.code]
		if got := tt.code.Class() == jute.Passing; got != passes {
			t.Errorf("%v passes: %t", tt.code, got)
		}
		if got := tt.code.Class() == jute.AboutSession; got != ofSession {
			t.Errorf("%v is about the session: %t", tt.code, got)
		}
		if got := tt.code.LeavesOpen(); got != (open || inSession) {
			t.Errorf("%v leaves the effect open: %t", tt.code, got)
		}
		wrapped := errors.Join(zk.ErrNoNode, fmt.Errorf("get /a: %w", tt.err))
		if got := jute.IsPassing(wrapped); got != (passes || ofSession) {
			t.Errorf("%v passes: %t", wrapped, got)
		}
		if got := jute.IsOpen(wrapped); got != (open || inSession) {
			t.Errorf("%v leaves the effect open: %t", wrapped, got)
		}
	}
	if jute.IsPassing(nil) || jute.IsOpen(nil) ||
		!jute.IsPassing(zk.ErrConnectionClosed) || !jute.IsOpen(zk.ErrConnectionClosed) {
		t.Error("nil passes, or the loss of go-zookeeper does not")
	}
}
