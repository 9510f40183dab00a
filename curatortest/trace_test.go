package curatortest

import (
	"testing"
)

func TestTraceIsBounded(t *testing.T) {
	var f Faults
	for i := range traceSize + 5 {
		f.trace.add(TraceEntry{Xid: int32(i)})
	}
	got := f.Trace()
	if len(got) != traceSize || got[0].Xid != 5 || got[traceSize-1].Xid != traceSize+4 {
		t.Errorf("%d entries, %d to %d", len(got), got[0].Xid, got[len(got)-1].Xid)
	}
	f.ResetTrace()
	f.trace.add(TraceEntry{Xid: 7})
	if got := f.Trace(); len(got) != 1 || got[0].Xid != 7 {
		t.Errorf("after reset: %v", got)
	}
}

func TestTraceEntryString(t *testing.T) {
	tests := []struct {
		entry TraceEntry
		want  string
	}{
		{TraceEntry{Connection: 1, Op: "connect"}, "#1 0x0 0 > connect"},
		{
			TraceEntry{Connection: 1, SessionID: 0x10, Op: "connect", Reply: true, Code: -112},
			"#1 0x10 0 < connect SESSIONEXPIRED",
		},
		{TraceEntry{Connection: 12, SessionID: 0x10, Xid: 7, Op: "create2", Path: "/a b"}, "#12 0x10 7 > create2 /a b"},
		{
			TraceEntry{Connection: 12, SessionID: 0x10, Xid: 7, Op: "create2", Path: "/a", Reply: true, Zxid: 0x1f},
			"#12 0x10 7 < create2 /a OK zxid 0x1f",
		},
		{
			TraceEntry{Connection: 12, SessionID: 0x10, Xid: 7, Op: "multi", Path: "/a,/b", Reply: true, Code: -999},
			"#12 0x10 7 < multi /a,/b -999",
		},
		{
			TraceEntry{Connection: 1, SessionID: 0x10, Xid: -1, Op: "notification", Path: "/a", Reply: true, Zxid: -1},
			"#1 0x10 -1 < notification /a",
		},
		{TraceEntry{Connection: 1}, "#1 0x0 0 > ?"},
	}
	for _, tt := range tests {
		if got := tt.entry.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got := FormatTrace(nil); got != "" {
		t.Errorf("trace of nothing: %q", got)
	}
	if got := FormatTrace([]TraceEntry{tests[0].entry, tests[2].entry}); got != tests[0].want+"\n"+tests[2].want {
		t.Errorf("trace of two: %q", got)
	}
}
