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

// codes holds, at minus the code, Java's name of it and the error it stands for.
var codes = [...]struct {
	name string
	err  error
}{
	-CodeOK:                       {"OK", nil},
	-CodeSystemError:              {"SYSTEMERROR", ErrSystem},
	-CodeRuntimeInconsistency:     {"RUNTIMEINCONSISTENCY", ErrRuntimeInconsistency},
	-CodeDataInconsistency:        {"DATAINCONSISTENCY", ErrDataInconsistency},
	-CodeConnectionLoss:           {"CONNECTIONLOSS", ErrConnectionLoss},
	-CodeMarshallingError:         {"MARSHALLINGERROR", ErrMarshalling},
	-CodeUnimplemented:            {"UNIMPLEMENTED", ErrUnimplemented},
	-CodeOperationTimeout:         {"OPERATIONTIMEOUT", ErrOperationTimeout},
	-CodeBadArguments:             {"BADARGUMENTS", zk.ErrBadArguments},
	-CodeUnknownSession:           {"UNKNOWNSESSION", ErrUnknownSession},
	-CodeNewConfigNoQuorum:        {"NEWCONFIGNOQUORUM", ErrNewConfigNoQuorum},
	-CodeReconfigInProgress:       {"RECONFIGINPROGRESS", ErrReconfigInProgress},
	-CodeAPIError:                 {"APIERROR", zk.ErrAPIError},
	-CodeNoNode:                   {"NONODE", zk.ErrNoNode},
	-CodeNoAuth:                   {"NOAUTH", zk.ErrNoAuth},
	-CodeBadVersion:               {"BADVERSION", zk.ErrBadVersion},
	-CodeNoChildrenForEphemerals:  {"NOCHILDRENFOREPHEMERALS", zk.ErrNoChildrenForEphemerals},
	-CodeNodeExists:               {"NODEEXISTS", zk.ErrNodeExists},
	-CodeNotEmpty:                 {"NOTEMPTY", zk.ErrNotEmpty},
	-CodeSessionExpired:           {"SESSIONEXPIRED", zk.ErrSessionExpired},
	-CodeInvalidCallback:          {"INVALIDCALLBACK", ErrInvalidCallback},
	-CodeInvalidACL:               {"INVALIDACL", zk.ErrInvalidACL},
	-CodeAuthFailed:               {"AUTHFAILED", zk.ErrAuthFailed},
	-CodeClosing:                  {"CLOSING", zk.ErrClosing},
	-CodeNothing:                  {"NOTHING", zk.ErrNothing},
	-CodeSessionMoved:             {"SESSIONMOVED", zk.ErrSessionMoved},
	-CodeNotReadOnly:              {"NOTREADONLY", ErrNotReadOnly},
	-CodeEphemeralOnLocalSession:  {"EPHEMERALONLOCALSESSION", ErrEphemeralOnLocalSession},
	-CodeNoWatcher:                {"NOWATCHER", ErrNoWatcher},
	-CodeRequestTimeout:           {"REQUESTTIMEOUT", ErrRequestTimeout},
	-CodeReconfigDisabled:         {"RECONFIGDISABLED", zk.ErrReconfigDisabled},
	-CodeSessionClosedRequireSASL: {"SESSIONCLOSEDREQUIRESASLAUTH", ErrSessionClosedRequireSASL},
	-CodeQuotaExceeded:            {"QUOTAEXCEEDED", ErrQuotaExceeded},
	-CodeThrottledOp:              {"THROTTLEDOP", ErrThrottledOp},
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
