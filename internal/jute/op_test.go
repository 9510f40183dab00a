package jute_test

import (
	"testing"

	"github.com/gocurator/curator/internal/jute"
)

func TestOpHasItsNumberAndName(t *testing.T) {
	tests := []struct {
		op   jute.Op
		num  int32
		name string
	}{
		{jute.OpError, -1, "error"},
		{jute.OpCreate, 1, "create"},
		{jute.OpDelete, 2, "delete"},
		{jute.OpExists, 3, "exists"},
		{jute.OpGetData, 4, "getData"},
		{jute.OpSetData, 5, "setData"},
		{jute.OpGetACL, 6, "getACL"},
		{jute.OpSetACL, 7, "setACL"},
		{jute.OpGetChildren, 8, "getChildren"},
		{jute.OpSync, 9, "sync"},
		{jute.OpPing, 11, "ping"},
		{jute.OpGetChildren2, 12, "getChildren2"},
		{jute.OpCheck, 13, "check"},
		{jute.OpMulti, 14, "multi"},
		{jute.OpCreate2, 15, "create2"},
		{jute.OpReconfig, 16, "reconfig"},
		{jute.OpCheckWatches, 17, "checkWatches"},
		{jute.OpRemoveWatches, 18, "removeWatches"},
		{jute.OpCreateContainer, 19, "createContainer"},
		{jute.OpCreateTTL, 21, "createTTL"},
		{jute.OpMultiRead, 22, "multiRead"},
		{jute.OpAuth, 100, "auth"},
		{jute.OpSetWatches, 101, "setWatches"},
		{jute.OpSASL, 102, "sasl"},
		{jute.OpGetEphemerals, 103, "getEphemerals"},
		{jute.OpGetAllChildrenNumber, 104, "getAllChildrenNumber"},
		{jute.OpSetWatches2, 105, "setWatches2"},
		{jute.OpAddWatch, 106, "addWatch"},
		{jute.OpWhoAmI, 107, "whoAmI"},
		{jute.OpCloseSession, -11, "closeSession"},
		{20, 20, "op(20)"},
		{-7, -7, "op(-7)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if int32(tt.op) != tt.num || tt.op.String() != tt.name {
				t.Errorf("got %d %q, want %d", int32(tt.op), tt.op, tt.num)
			}
		})
	}
}
