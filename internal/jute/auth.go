package jute

// Auth adds an identity to a connection. Its answer has [XidAuth] and may overtake others.
type Auth struct {
	Type   int32 // always 0
	Scheme string
	Auth   []byte
}

// AppendAuth appends the body of [OpAuth].
func AppendAuth(b []byte, a *Auth) []byte {
	b = AppendInt32(b, a.Type)
	b = AppendString(b, a.Scheme)
	return AppendBuffer(b, a.Auth)
}

// DecodeAuth reads the body of [OpAuth].
func DecodeAuth(body []byte) (Auth, error) {
	d := NewDecoder(body)
	a := Auth{Type: d.Int32(), Scheme: d.String(), Auth: d.Buffer()}
	if d.err != nil {
		return Auth{}, d.err
	}
	return a, nil
}
