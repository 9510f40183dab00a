package jute

// SetWatches arms a session's watches again on a new connection. RelativeZxid is the last transaction the
// client saw; the server at once sends the events of one-shot watches that were missed since.
type SetWatches struct {
	RelativeZxid int64
	Data         []string
	Exist        []string
	Child        []string
	Persistent   []string
	Recursive    []string
}

// AppendSetWatches appends the body of [OpSetWatches], which cannot carry Persistent and Recursive.
func AppendSetWatches(b []byte, w *SetWatches) []byte {
	b = AppendInt64(b, w.RelativeZxid)
	b = AppendStrings(b, w.Data)
	b = AppendStrings(b, w.Exist)
	return AppendStrings(b, w.Child)
}

// AppendSetWatches2 appends the body of [OpSetWatches2], which servers know from 3.6 on.
func AppendSetWatches2(b []byte, w *SetWatches) []byte {
	b = AppendSetWatches(b, w)
	b = AppendStrings(b, w.Persistent)
	return AppendStrings(b, w.Recursive)
}

// DecodeSetWatches reads the body of [OpSetWatches].
func DecodeSetWatches(body []byte) (SetWatches, error) {
	d := NewDecoder(body)
	w := d.setWatches()
	if d.err != nil {
		return SetWatches{}, d.err
	}
	return w, nil
}

// DecodeSetWatches2 reads the body of [OpSetWatches2].
func DecodeSetWatches2(body []byte) (SetWatches, error) {
	d := NewDecoder(body)
	w := d.setWatches()
	w.Persistent = d.Strings()
	w.Recursive = d.Strings()
	if d.err != nil {
		return SetWatches{}, d.err
	}
	return w, nil
}

func (d *Decoder) setWatches() SetWatches {
	return SetWatches{
		RelativeZxid: d.Int64(),
		Data:         d.Strings(),
		Exist:        d.Strings(),
		Child:        d.Strings(),
	}
}
