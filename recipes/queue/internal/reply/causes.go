package reply

import "github.com/gocurator/curator/internal/usercode"

// Causes are the texts of the errors that were reported. The zero value is ready.
type Causes map[string]struct{}

// IsNew records err, and reports whether it is new.
func (c *Causes) IsNew(err error) bool {
	if *c == nil {
		*c = make(Causes)
	}
	text := usercode.WithoutStack(err)
	_, known := (*c)[text]
	(*c)[text] = struct{}{}
	return !known
}
