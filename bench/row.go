package main

import "slices"

// server is where a row is measured.
type server string

const (
	realServer server = "real server"
	nullServer server = "null server" // answers at once
	// cutServer is a real one behind a proxy that cuts connections.
	cutServer server = "real server, cut off"
)

// row is a piece of work, who does it, and the budget for it.
type row struct {
	name    string
	server  server
	entries []entry // the first is what the budget is about
	budget  []bound
	fresh   bool    // a process for each run: what it has used before would show in its memory
	stretch float64 // makes the time of a run that much longer; 0 is 1
	often   int     // so many rounds for each that is asked for, where the difference is small; 0 is 1
	servers int     // how often the server is in the connect string; 0 is 1
	show    []metric
}

// entry is a contender in a row.
type entry struct {
	name    string // in the table
	library string
	load    load
}

func (r row) String() string { return r.name + ", " + string(r.server) }

// cells gives the cells that the lines of the row begin with.
func (r row) cells() string { return "| " + r.name + " | " + string(r.server) + " |" }

// against returns an entry for each library, all with the same load.
func against(l load, libraries ...string) []entry {
	entries := make([]entry, len(libraries))
	for i, name := range libraries {
		entries[i] = entry{name: name, library: name, load: l}
	}
	return entries
}

// entry gives the number of a contender, -1 if there is none of that name.
func (r row) entry(name string) int {
	return slices.IndexFunc(r.entries, func(e entry) bool { return e.name == name })
}

// shows reports whether the tables have this metric of the row.
func (r row) shows(m metric) bool {
	return slices.ContainsFunc(r.show, func(o metric) bool { return o.name == m.name })
}
