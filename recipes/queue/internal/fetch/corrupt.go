package fetch

import (
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// decode decodes an item with a lock. It handles the item also if the codec ends the goroutine.
func (f *Fetcher) decode(m *claim.Message) (err error) {
	returned := false
	defer func() {
		if !returned {
			f.keepCorrupt(m, claim.ErrDecodingExited)
		}
	}()
	m.Contents, err = f.handler.Decode(m.Data)
	returned = true
	return err
}

// keepCorrupt handles an item that cannot be read as the user has configured.
func (f *Fetcher) keepCorrupt(m *claim.Message, cause error) {
	isNew := f.quarantine.Add(m.Name.Whole, time.Now(), cause)
	if err := f.handler.Corrupt(m, cause, isNew); err != nil {
		f.quarantineItem(m.Name, m.Data, err)
	}
}

// quarantineItem skips an item for a while, and reports the cause once.
func (f *Fetcher) quarantineItem(n node.Name, data []byte, cause error) {
	if f.quarantine.Add(n.Whole, time.Now(), cause) {
		f.handler.ReportItem(f.root, n, data, cause)
	}
}

// endQuarantines lets the items whose quarantine has ended be claimed again.
func (f *Fetcher) endQuarantines() {
	for _, name := range f.quarantine.Ended(time.Now()) {
		f.backlog.add(f.backlog.items[name])
	}
}

// takeQuarantined removes an item in quarantine from the items that may be claimed.
func (f *Fetcher) takeQuarantined(name string) {
	if len(f.quarantine.Items) > 0 && f.quarantine.Has(name, time.Now()) {
		f.backlog.take(f.backlog.items[name])
	}
}
