package callbacks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
)

func TestNamesAreThoseOfJava(t *testing.T) {
	var got []string
	for typ := callbacks.EventType(0); typ <= callbacks.GetAllChildrenNumber+1; typ++ {
		got = append(got, typ.String())
	}
	want := []string{
		"UNKNOWN", "CREATE", "DELETE", "EXISTS", "GET_DATA", "SET_DATA", "CHILDREN", "SYNC", "GET_ACL", "SET_ACL",
		"TRANSACTION", "GET_CONFIG", "RECONFIG", "WATCHED", "REMOVE_WATCHES", "CLOSING", "ADD_WATCH", "MULTI_READ",
		"GET_EPHEMERALS", "GET_ALL_CHILDREN_NUMBER", "UNKNOWN",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event types (-want +got):\n%s", diff)
	}
	got = nil
	for typ := callbacks.OperationType(0); typ <= callbacks.OperationCheck+1; typ++ {
		got = append(got, typ.String())
	}
	want = []string{"UNKNOWN", "CREATE", "DELETE", "SET_DATA", "CHECK", "UNKNOWN"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operation types (-want +got):\n%s", diff)
	}
	if s := callbacks.EventType(-1).String() + callbacks.OperationType(-1).String(); s != "UNKNOWNUNKNOWN" {
		t.Errorf("negative ones are %q", s)
	}
}
