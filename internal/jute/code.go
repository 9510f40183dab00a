package jute

import (
	"errors"
	"strconv"

	"github.com/go-zookeeper/zk"
)

// Code is a server's verdict on a request, a number of Java's KeeperException.Code.
type Code int32

// The codes of KeeperException.Code. Closing and Nothing are not in Java: the C client, and go-zookeeper
// after it, know them.
const (
	CodeOK                       Code = 0
	CodeSystemError              Code = -1
	CodeRuntimeInconsistency     Code = -2
	CodeDataInconsistency        Code = -3
	CodeConnectionLoss           Code = -4
	CodeMarshallingError         Code = -5
	CodeUnimplemented            Code = -6
	CodeOperationTimeout         Code = -7
	CodeBadArguments             Code = -8
	CodeUnknownSession           Code = -12
	CodeNewConfigNoQuorum        Code = -13
	CodeReconfigInProgress       Code = -14
	CodeAPIError                 Code = -100
	CodeNoNode                   Code = -101
	CodeNoAuth                   Code = -102
	CodeBadVersion               Code = -103
	CodeNoChildrenForEphemerals  Code = -108
	CodeNodeExists               Code = -110
	CodeNotEmpty                 Code = -111
	CodeSessionExpired           Code = -112
	CodeInvalidCallback          Code = -113
	CodeInvalidACL               Code = -114
	CodeAuthFailed               Code = -115
	CodeClosing                  Code = -116
	CodeNothing                  Code = -117
	CodeSessionMoved             Code = -118
	CodeNotReadOnly              Code = -119
	CodeEphemeralOnLocalSession  Code = -120
	CodeNoWatcher                Code = -121
	CodeRequestTimeout           Code = -122
	CodeReconfigDisabled         Code = -123
	CodeSessionClosedRequireSASL Code = -124
	CodeQuotaExceeded            Code = -125
	CodeThrottledOp              Code = -127
)

// Class is the answer to the question whether another try of a request makes sense.
type Class uint8

// The classes.
const (
	// Final: the same request fails again, until the program or the servers are changed.
	Final Class = iota
	// Passing: the same request may soon succeed.
	Passing
	// AboutNode: the same request may succeed when somebody has changed the node.
	AboutNode
	// AboutSession: the same request may succeed in the next session, or on the connection that has the session now.
	AboutSession
)

// codes holds, at minus the code, what this library knows of it: Java's name, the error it stands for, its class, and
// whether a request with this end may have taken effect. docs/errors.md has the same table, with reasons.
var codes = [...]struct {
	name  string
	err   error
	class Class
	open  bool
}{
	-CodeOK:                       {name: "OK"},
	-CodeSystemError:              {"SYSTEMERROR", ErrSystem, Final, false},
	-CodeRuntimeInconsistency:     {"RUNTIMEINCONSISTENCY", ErrRuntimeInconsistency, Final, false},
	-CodeDataInconsistency:        {"DATAINCONSISTENCY", ErrDataInconsistency, Final, false},
	-CodeConnectionLoss:           {"CONNECTIONLOSS", ErrConnectionLoss, Passing, true},
	-CodeMarshallingError:         {"MARSHALLINGERROR", ErrMarshalling, Final, false},
	-CodeUnimplemented:            {"UNIMPLEMENTED", ErrUnimplemented, Final, false},
	-CodeOperationTimeout:         {"OPERATIONTIMEOUT", ErrOperationTimeout, Passing, true},
	-CodeBadArguments:             {"BADARGUMENTS", zk.ErrBadArguments, Final, false},
	-CodeUnknownSession:           {"UNKNOWNSESSION", ErrUnknownSession, Final, false},
	-CodeNewConfigNoQuorum:        {"NEWCONFIGNOQUORUM", ErrNewConfigNoQuorum, Final, false},
	-CodeReconfigInProgress:       {"RECONFIGINPROGRESS", ErrReconfigInProgress, Passing, false},
	-CodeAPIError:                 {"APIERROR", zk.ErrAPIError, Final, false},
	-CodeNoNode:                   {"NONODE", zk.ErrNoNode, AboutNode, false},
	-CodeNoAuth:                   {"NOAUTH", zk.ErrNoAuth, AboutNode, false},
	-CodeBadVersion:               {"BADVERSION", zk.ErrBadVersion, AboutNode, false},
	-CodeNoChildrenForEphemerals:  {"NOCHILDRENFOREPHEMERALS", zk.ErrNoChildrenForEphemerals, AboutNode, false},
	-CodeNodeExists:               {"NODEEXISTS", zk.ErrNodeExists, AboutNode, false},
	-CodeNotEmpty:                 {"NOTEMPTY", zk.ErrNotEmpty, AboutNode, false},
	-CodeSessionExpired:           {"SESSIONEXPIRED", zk.ErrSessionExpired, AboutSession, true},
	-CodeInvalidCallback:          {"INVALIDCALLBACK", ErrInvalidCallback, Final, false},
	-CodeInvalidACL:               {"INVALIDACL", zk.ErrInvalidACL, Final, false},
	-CodeAuthFailed:               {"AUTHFAILED", zk.ErrAuthFailed, Final, false},
	-CodeClosing:                  {"CLOSING", zk.ErrClosing, Final, false},
	-CodeNothing:                  {"NOTHING", zk.ErrNothing, Final, false},
	-CodeSessionMoved:             {"SESSIONMOVED", zk.ErrSessionMoved, AboutSession, true},
	-CodeNotReadOnly:              {"NOTREADONLY", ErrNotReadOnly, Final, false},
	-CodeEphemeralOnLocalSession:  {"EPHEMERALONLOCALSESSION", ErrEphemeralOnLocalSession, Final, false},
	-CodeNoWatcher:                {"NOWATCHER", ErrNoWatcher, AboutNode, false},
	-CodeRequestTimeout:           {"REQUESTTIMEOUT", ErrRequestTimeout, Passing, true},
	-CodeReconfigDisabled:         {"RECONFIGDISABLED", zk.ErrReconfigDisabled, Final, false},
	-CodeSessionClosedRequireSASL: {"SESSIONCLOSEDREQUIRESASLAUTH", ErrSessionClosedRequireSASL, Final, false},
	-CodeQuotaExceeded:            {"QUOTAEXCEEDED", ErrQuotaExceeded, AboutNode, false},
	-CodeThrottledOp:              {"THROTTLEDOP", ErrThrottledOp, Passing, false},
}

// known reports whether the code has a name; the numbers have gaps.
func (c Code) known() bool {
	return c <= 0 && c > Code(-len(codes)) && codes[-c].name != ""
}

// Err returns the error of the code: nil for OK, go-zookeeper's where it has one, else a sentinel of this
// package, and [UnknownCode] for a code without a name.
func (c Code) Err() error {
	if !c.known() {
		return UnknownCode(c)
	}
	return codes[-c].err
}

// String returns the code's name in Java, such as "NONODE", or its number.
func (c Code) String() string {
	if !c.known() {
		return strconv.Itoa(int(c))
	}
	return codes[-c].name
}

// Class returns the class of the code. A code without a name is final.
func (c Code) Class() Class {
	if !c.known() {
		return Final
	}
	return codes[-c].class
}

// LeavesOpen reports whether a request with this end may have taken effect.
func (c Code) LeavesOpen() bool { return c.known() && codes[-c].open }

// IsPassing reports whether another try of the request that failed with err may succeed by itself: err is a passing
// one, or about the session.
func IsPassing(err error) bool {
	if errors.Is(err, zk.ErrConnectionClosed) {
		return true
	}
	for i := range codes {
		if c := &codes[i]; (c.class == Passing || c.class == AboutSession) && errors.Is(err, c.err) {
			return true
		}
	}
	return false
}

// IsOpen reports whether the request that failed with err may have taken effect.
func IsOpen(err error) bool {
	if errors.Is(err, zk.ErrConnectionClosed) {
		return true
	}
	for i := range codes {
		if c := &codes[i]; c.open && errors.Is(err, c.err) {
			return true
		}
	}
	return false
}

// CodeOf finds the code an error stands for, however deeply it is wrapped; nil is OK. The flag is false for
// an error that is no server's verdict. Of several codes in one joined error it gives the one nearest 0.
func CodeOf(err error) (Code, bool) {
	if err == nil {
		return CodeOK, true
	}
	if errors.Is(err, zk.ErrConnectionClosed) {
		return CodeConnectionLoss, true
	}
	for i := range codes {
		if codes[i].err != nil && errors.Is(err, codes[i].err) {
			return Code(-i), true
		}
	}
	var unknown UnknownCode
	if errors.As(err, &unknown) {
		return Code(unknown), true
	}
	return 0, false
}
