package main

import "slices"

// server is the kind of server that a row needs.
type server string

const (
	realServer server = "real server"
	nullServer server = "null server" // answers at once
	// cutServer is a real one behind a proxy that cuts connections.
	cutServer server = "real server, cut off"
	// awayServer is a real one behind a proxy that sends clients away on request.
	awayServer server = "real server, away"
)

// row is a piece of work, its contenders, and its budget.
type row struct {
	name    string
	server  server
	entries []entry // a bound is about the first one, if it does not name another
	budget  []bound
	fresh   bool    // a process for each run: memory of an earlier run would count
	stretch float64 // multiplies the time of a run; 0 is 1
	often   int     // multiplies the number of rounds, for small differences; 0 is 1
	servers int     // how often the server is in the connect string; 0 is 1
	show    []metric
}

// entry is a contender in a row.
type entry struct {
	name    string // in the table
	library string
	load    load
	cores   cores // "": those of the row
}

func (r row) String() string { return r.name + ", " + string(r.server) }

// cells returns the first cells of each line of the row.
func (r row) cells() string { return "| " + r.name + " | " + string(r.server) + " |" }

// against returns an entry for each library, all with the same load.
func against(l load, libraries ...string) []entry {
	entries := make([]entry, len(libraries))
	for i, name := range libraries {
		entries[i] = entry{name: name, library: name, load: l}
	}
	return entries
}

// entry returns the number of a contender, or -1 if there is none of that name.
func (r row) entry(name string) int {
	return slices.IndexFunc(r.entries, func(e entry) bool { return e.name == name })
}

// shows reports whether the tables have this metric of the row.
func (r row) shows(m metric) bool {
	return slices.ContainsFunc(r.show, func(o metric) bool { return o.name == m.name })
}
