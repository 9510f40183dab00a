package testenv

import (
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

// Downgrade makes the servers behind f answer as those before 3.6 do, without the requests that came with 3.6, and ends
// all connections. Sessions and nodes stay.
func Downgrade(f *curatortest.Faults) {
	f.Add(curatortest.Rule{
		Ops:    []string{"addWatch", "setWatches2", "multiRead"},
		Action: curatortest.ReplyErrorThenCut, Err: jute.ErrUnimplemented,
	})
	f.CutAll()
}
