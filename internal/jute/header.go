package jute

// RequestHeader opens every request after the handshake.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// AppendRequestHeader appends the header.
func AppendRequestHeader(b []byte, h RequestHeader) []byte {
	b = AppendInt32(b, h.Xid)
	return AppendInt32(b, int32(h.Op))
}

// DecodeRequestHeader reads the header off a frame and gives the body behind it.
func DecodeRequestHeader(frame []byte) (h RequestHeader, body []byte, err error) {
	d := NewDecoder(frame)
	h = RequestHeader{Xid: d.Int32(), Op: Op(d.Int32())}
	if d.err != nil {
		return RequestHeader{}, nil, d.err
	}
	return h, d.Rest(), nil
}

// ReplyHeader opens every answer and notification. Zxid is the last transaction the server had done when it
// answered; servers before 3.9 send -1 there in a notification.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Code Code
}

// AppendReplyHeader appends the header.
func AppendReplyHeader(b []byte, h ReplyHeader) []byte {
	b = AppendInt32(b, h.Xid)
	b = AppendInt64(b, h.Zxid)
	return AppendInt32(b, int32(h.Code))
}

// DecodeReplyHeader reads the header off a frame and gives the body behind it, which is empty when the code
// is not OK.
func DecodeReplyHeader(frame []byte) (h ReplyHeader, body []byte, err error) {
	d := NewDecoder(frame)
	h = ReplyHeader{Xid: d.Int32(), Zxid: d.Int64(), Code: Code(d.Int32())}
	if d.err != nil {
		return ReplyHeader{}, nil, d.err
	}
	return h, d.Rest(), nil
}
