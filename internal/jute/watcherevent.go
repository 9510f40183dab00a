package jute

import "github.com/go-zookeeper/zk"

// WatcherEvent is the body of a notification.
type WatcherEvent struct {
	Type  zk.EventType
	State zk.State
	Path  string
}

// AppendWatcherEvent appends the record.
func AppendWatcherEvent(b []byte, e *WatcherEvent) []byte {
	b = AppendInt32(b, int32(e.Type))
	b = AppendInt32(b, int32(e.State))
	return AppendString(b, e.Path)
}

// DecodeWatcherEvent reads the body of a frame whose xid is [XidNotification].
func DecodeWatcherEvent(body []byte) (WatcherEvent, error) {
	d := NewDecoder(body)
	e := WatcherEvent{Type: zk.EventType(d.Int32()), State: zk.State(d.Int32()), Path: d.String()}
	if d.err != nil {
		return WatcherEvent{}, d.err
	}
	return e, nil
}
