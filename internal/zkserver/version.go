package zkserver

// Version is the release of ZooKeeper whose behaviour a service has, where releases differ.
type Version int

// The versions.
const (
	// V38 is 3.8.0 as Debian has it, which sends watch events only to clients that may read the node (ZOOKEEPER-4799).
	V38 Version = iota
	// V39 is 3.9.3 as Debian has it. Watch modes of one path add up, notifications have a zxid, exists needs the read
	// permission, a multi is decoded as a whole and returns the stats of created nodes, and a check outside of a multi is
	// refused.
	V39
)

// String is the number of the release.
func (v Version) String() string {
	if v == V39 {
		return "3.9.3"
	}
	return "3.8.0"
}

// build returns the release as servers report it: its number, commit and date. Clients parse it.
func (v Version) build() string {
	if v == V39 {
		return v.String() + "-curatortest, built on 2024-02-12 20:59 UTC"
	}
	return v.String() + "-curatortest, built on 2022-02-25 08:49 UTC"
}

// manyModes reports whether a connection can watch one path in several modes at once.
func (v Version) manyModes() bool { return v >= V39 }

// dated reports whether a notification has the zxid of its change.
func (v Version) dated() bool { return v >= V39 }

// guarded reports whether exists needs the read permission.
func (v Version) guarded() bool { return v >= V39 }

// loneCheck reports whether a check may be sent outside of a multi.
func (v Version) loneCheck() bool { return v < V39 }

// numbersUnread reports whether a write that cannot be read takes a zxid. All versions do the same for a multi and for
// a reconfig.
func (v Version) numbersUnread() bool { return v < V39 }

// create2InMulti reports whether a create2 in a multi stays a create2. Otherwise it becomes a create.
func (v Version) create2InMulti() bool { return v >= V39 }
